/** The key that this node signs with: the file that the configuration names, or one that it makes for itself. */
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { createKey, signerOf, type Signer } from "#doors/deploy/signing/signing.ts";

export async function openSigner(folder: string, configured: string | undefined): Promise<Signer> {
  if (configured !== undefined) return signerOf(await readKey(configured));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "signing-key.pem");
  try {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(createKey().privatePem);
    await file.sync();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return signerOf(await readKey(path));
}

async function readKey(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new Fault("unavailable", "read signing key", { file: path, errno: cause.code }, cause);
  });
}
