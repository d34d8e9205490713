/** Keys of the whole cluster that the program makes for itself: the first node that needs one makes it. */
import { randomBytes } from "node:crypto";
import { must } from "#base/assert.ts";
import type { Vault } from "./vault.ts";

/** The owner of what belongs to no tenant. */
export const ofCluster = "*";

const keyBytes = 32;

export async function sharedKey(vault: Pick<Vault, "add" | "read">, name: string): Promise<Buffer> {
  const found = await vault.read(ofCluster, name);
  if (found) return found;
  await vault.add(ofCluster, name, randomBytes(keyBytes), "millrace");
  return must(await vault.read(ofCluster, name), "the key that was added");
}
