/** The vault of secrets, and the one of what the program keeps for itself. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Records } from "#records/watch.ts";
import { keysInFile, keysInVariable, keysOfCommand, ownKeysFile, type KeySource } from "#vault/key-source.ts";
import { openVault, type Vault } from "#vault/vault.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";

export type Vaults = { readonly secrets: Vault; readonly system: Vault };

export function openVaults(config: Config, folder: DataFolder, ports: VaultsPorts): Vaults {
  const source = keySource(config, folder);
  return { secrets: openVault({ ...ports, source }), system: openVault({ ...ports, source }, "system") };
}

type VaultsPorts = { readonly records: Records; readonly clock: Clock };

function keySource({ vault, journal }: Config, { path }: DataFolder): KeySource {
  const { keyFile, keyVariable, keyCommand } = vault;
  if (keyFile !== undefined) return keysInFile(keyFile);
  if (keyVariable !== undefined) return keysInVariable(keyVariable, process.env);
  if (keyCommand !== undefined) return keysOfCommand(keyCommand);
  if (journal.kind !== "postgres") return ownKeysFile(join(path, "vault.keys"));
  return {
    async read() {
      const why = "nodes that share a database need the same keys: set vault.keyFile (docs/how-to/secrets.md)";
      throw new Fault("invalid", "read the vault's keys", { why });
    },
  };
}
