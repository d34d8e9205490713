/** The vault of secrets, and the one of what the program keeps for itself. */
import { hash, hkdfSync } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Records } from "#records/watch.ts";
import { keysInFile, keysInVariable, keysOfCommand, ownKeysFile, type KeySource } from "#vault/key-source.ts";
import { openVault, sealedKind, type Vault } from "#vault/vault.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";

export type Vaults = { readonly secrets: Vault; readonly system: Vault };

export function openVaults(config: Config, folder: DataFolder, ports: VaultsPorts): Vaults {
  const isSealed = async (): Promise<boolean> => {
    for (const space of ["secret", "system"] as const)
      if ((await ports.records.list({ kind: sealedKind(space), limit: 1 })).records.length > 0) return true;
    return false;
  };
  const source = keySource(config, folder, isSealed);
  return {
    secrets: openVault({ ...ports, source: source ?? noKeys }),
    system: openVault({ ...ports, source: source ?? ofClusterSecret(ports.secret) ?? noKeys }, "system"),
  };
}

type VaultsPorts = {
  readonly records: Records;
  readonly clock: Clock;
  /** What nodes of the cluster share, if they do. */
  readonly secret: string | undefined;
};

/** What the program keeps for itself can be made again: if the secret changes, so do those keys. */
function ofClusterSecret(secret: string | undefined): KeySource | undefined {
  if (secret === undefined) return undefined;
  const bytes = new Uint8Array(hkdfSync("sha256", secret, "", "millrace vault, system", 32));
  const id = `c${hash("sha256", bytes).slice(0, 8)}`;
  return { read: async () => [{ id, bytes }] };
}

const noKeys: KeySource = {
  async read() {
    const why = "nodes that share a database need the same keys: set vault.keyFile (docs/how-to/secrets.md)";
    throw new Fault("invalid", "read the vault's keys", { why });
  },
};

function keySource(
  { vault, journal }: Config,
  { path }: DataFolder,
  isSealed: () => Promise<boolean>,
): KeySource | undefined {
  const { keyFile, keyVariable, keyCommand } = vault;
  if (keyFile !== undefined) return keysInFile(keyFile);
  if (keyVariable !== undefined) return keysInVariable(keyVariable, process.env);
  if (keyCommand !== undefined) return keysOfCommand(keyCommand);
  return journal.kind === "postgres" ? undefined : ownKeysFile(join(path, "vault.keys"), isSealed);
}
