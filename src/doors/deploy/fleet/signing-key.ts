/**
 * The keys of the cluster: one to sign goals and manifests, one to make the tickets of machines from. All nodes have
 * the same, from the vault; a file that the configuration names, or that this node made before, wins over the vault's.
 */
import { createPrivateKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { signerOf, type Signer } from "#doors/deploy/signing/signing.ts";

export type KeyPorts = {
  /** A key of the whole cluster. */
  readonly keyOf: (name: string) => Promise<Uint8Array>;
  /** This node's own folder: earlier versions kept the key there. */
  readonly folder: string;
};

const seedBytes = 32;
/** What stands before the seed in an Ed25519 key as PKCS #8. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

export async function openSigner({ keyOf, folder }: KeyPorts, configured: string | undefined): Promise<Signer> {
  if (configured !== undefined) return signerOf(await readKey(configured));
  const own = await readFile(join(folder, "signing-key.pem"), "utf8").catch(ignoreMissing);
  if (own !== undefined) return signerOf(own);
  return await vaultSigner(keyOf, "deploy.signing");
}

/** A key of the vault, by its name. */
export async function vaultSigner(keyOf: KeyPorts["keyOf"], name: string): Promise<Signer> {
  const seed = Buffer.from(await keyOf(name)).subarray(0, seedBytes);
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Head, seed]), format: "der", type: "pkcs8" });
  return signerOf(key.export({ format: "pem", type: "pkcs8" }).toString());
}

/** Base64. */
export const openTicketKey = async ({ keyOf }: KeyPorts): Promise<string> =>
  Buffer.from(await keyOf("deploy.tickets")).toString("base64");

async function readKey(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new Fault("unavailable", "read signing key", { file: path, errno: cause.code }, cause);
  });
}
