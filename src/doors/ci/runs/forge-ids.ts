/**
 * Numbers for what GitHub numbers (CI-37). They follow from names within the tenant, never from what an event says:
 * tokens that prove who a step is carry them.
 */
import { createHash } from "node:crypto";

export type ForgeIds = { readonly repository: number; readonly owner: number; readonly actor: number };

/** Below 2^47, so that it is exact wherever numbers are. */
const numberOf = (kind: string, name: string): number =>
  createHash("sha256").update(`${kind}\0${name.toLowerCase()}`).digest().readUIntBE(0, 6) % 2 ** 47;

export function forgeIds(of: {
  readonly tenant: string;
  readonly repository: string;
  readonly actor: string;
}): ForgeIds {
  const [owner = ""] = of.repository.split("/");
  return {
    repository: numberOf("repository", `${of.tenant}/${of.repository}`),
    owner: numberOf("owner", `${of.tenant}/${owner}`),
    actor: numberOf("actor", `${of.tenant}/${of.actor}`),
  };
}
