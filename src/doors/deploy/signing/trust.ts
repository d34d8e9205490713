/**
 * Which keys count for a machine: a list that the cluster signs, and that stays on the machine's disk.
 *
 * KY1 A list is taken only if it is newer than the known one and a key that counts, and that it does not revoke itself,
 *     signed it.
 * KY2 What a revoked key signed does not count, whether a node can be asked or not, and no later list takes that back.
 */
import { z } from "zod";
import { KeyRing, type Purpose, type Signed } from "./signing.ts";

export const keysMax = 20;
const revokedMax = 1_000;
const KeyId = z.string().regex(/^[0-9a-f]{32}$/, "not the id of a key");

export const TrustList = z.strictObject({
  format: z.literal(1),
  version: z.int().min(1),
  /** PEM. */
  keys: z.array(z.string().min(1).max(1_000)).min(1).max(keysMax),
  revoked: z.array(KeyId).max(revokedMax),
});
export type TrustList = z.output<typeof TrustList>;

/** What a machine keeps. Version 0: the keys that it was set up with. */
export const Trusted = TrustList.omit({ format: true }).extend({ version: z.int().min(0) });
export type Trusted = z.output<typeof Trusted>;

export class Trust {
  #kept: Trusted;
  #ring: KeyRing;

  constructor(kept: Trusted) {
    this.#kept = kept;
    this.#ring = new KeyRing(kept.keys, kept.revoked);
  }

  get kept(): Trusted {
    return this.#kept;
  }

  /** The body, or a Fault that says why the document does not count (SG1). */
  open(signed: Signed, purpose: Purpose): string {
    return this.#ring.open(signed, purpose);
  }

  /** Answers with why the list is refused; throws a Fault where no key that counts signed it. */
  take(signed: Signed): string | undefined {
    const parsed = TrustList.safeParse(JSON.parse(this.open(signed, "trust")));
    if (!parsed.success) return `it is malformed: ${parsed.error.issues[0]?.message}`;
    const { version, keys, revoked } = parsed.data;
    if (version <= this.#kept.version) return `version ${version} is not newer than ${this.#kept.version}`;
    if (revoked.includes(signed.key)) return "the key that signed it is among those that it revokes";
    const taken = new Set(revoked);
    if (this.#kept.revoked.some((key) => !taken.has(key))) return "it takes back a revocation";
    this.#kept = { version, keys, revoked };
    this.#ring = new KeyRing(keys, revoked);
    return undefined;
  }
}
