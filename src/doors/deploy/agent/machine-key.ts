import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { readIfThere, writeDurably } from "./durable-files.ts";

/** Every call of a machine shows its key in it. */
export const machineKeyHeader = "millrace-machine-key";

/** Made at the first start: the machine's name belongs to it from its first call on. */
export async function machineKey(root: string): Promise<string> {
  const path = join(root, "machine-key");
  const kept = await readIfThere(path);
  if (kept !== undefined) return kept;
  await mkdir(root, { recursive: true, mode: 0o700 });
  const key = randomBytes(32).toString("base64url");
  await writeDurably(path, key);
  return key;
}
