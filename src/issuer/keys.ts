/** The issuer's keys, sealed in the vault: numbered, so that of two nodes that add the next one, one does. */
import { randomBytes } from "node:crypto";
import { exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from "jose";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { ofCluster } from "#vault/shared-key.ts";
import type { Vault } from "#vault/vault.ts";
import { ringAt, type Ring, type RingKey, type RingRules } from "./key-ring.ts";

export const algorithm = "ES256";

export type IssuerKey = RingKey & {
  readonly number: number;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  /** As it is published. */
  readonly jwk: JWK;
};

export type IssuerKeysPorts = {
  readonly vault: Pick<Vault, "add" | "read" | "remove" | "list">;
  readonly clock: Pick<Clock, "wallMs" | "monotonicMs">;
};

const Kept = z.object({ kid: z.string(), signsFromMs: z.number(), jwk: z.record(z.string(), z.unknown()) });

const prefix = "issuer-key.";
const keysMax = 50;
/** A key that another node removed counts here for this long at most. */
const freshMs = 30_000;
/** Between two looks for a key that is not known, however many tokens name one. */
const cooldownMs = 2_000;

type Read = { readonly keys: readonly IssuerKey[]; readonly atMono: number };

export class IssuerKeys {
  readonly #ports: IssuerKeysPorts;
  readonly #rules: RingRules;
  /** Imported keys, by number: those that are still kept are not opened again. */
  readonly #imported = new Map<number, IssuerKey>();
  #last: Read | undefined;
  #reading: Promise<Read> | undefined;

  constructor(ports: IssuerKeysPorts, rules: RingRules) {
    this.#ports = ports;
    this.#rules = rules;
  }

  /** Throws Fault while the vault cannot be opened. */
  async ring(): Promise<Ring<IssuerKey>> {
    const { clock } = this.#ports;
    const last = this.#last;
    const isFresh = last !== undefined && clock.monotonicMs() - last.atMono < freshMs;
    const { keys } = isFresh ? last : await this.#reread();
    return await this.#kept(keys);
  }

  async trusted(kid: string): Promise<IssuerKey | undefined> {
    const known = (await this.ring()).trusted.find((key) => key.kid === kid);
    if (known) return known;
    const { monotonicMs } = this.#ports.clock;
    if (this.#last && monotonicMs.call(this.#ports.clock) - this.#last.atMono < cooldownMs) return undefined;
    await this.#reread();
    return (await this.ring()).trusted.find((key) => key.kid === kid);
  }

  /** A new key that signs at once; with `revokes`, no other is trusted any more. Returns its id. */
  async replace({ revokes }: { readonly revokes: boolean }): Promise<string> {
    const { vault, clock } = this.#ports;
    const { keys } = await this.#reread();
    if (keys.length >= keysMax && !revokes)
      throw new Fault("exhausted", "add a key", { keysMax, why: "wait until old keys have gone, or revoke them" });
    const number = await this.#add(keys, clock.wallMs());
    if (revokes) for (const key of keys) await vault.remove(ofCluster, nameOf(key.number));
    const added = (await this.#reread()).keys.find((key) => key.number === number);
    if (!added) throw new Fault("unavailable", "add a key", { why: "another node revoked it at the same time" });
    return added.kid;
  }

  async #kept(keys: readonly IssuerKey[]): Promise<Ring<IssuerKey>> {
    const { clock, vault } = this.#ports;
    const ring = ringAt(keys, clock.wallMs(), this.#rules);
    for (const key of ring.spent) await vault.remove(ofCluster, nameOf(key.number));
    if (ring.dueFromMs === undefined || keys.length >= keysMax) return ring;
    await this.#add(keys, ring.dueFromMs);
    return ringAt((await this.#reread()).keys, clock.wallMs(), this.#rules);
  }

  /** Of several nodes that add the same number, one does: all of them read what it added. */
  async #add(keys: readonly IssuerKey[], signsFromMs: number): Promise<number> {
    const number = Math.max(0, ...keys.map((key) => key.number)) + 1;
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
    const jwk = await exportJWK(privateKey);
    const kept = { kid: randomBytes(12).toString("base64url"), signsFromMs, jwk };
    await this.#ports.vault.add(ofCluster, nameOf(number), JSON.stringify(kept), "millrace");
    return number;
  }

  #reread(): Promise<Read> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<Read> {
    const { vault, clock } = this.#ports;
    const atMono = clock.monotonicMs();
    const { secrets } = await vault.list({ tenant: ofCluster, prefix, limit: 2 * keysMax });
    const numbers = secrets.map(({ name }) => Number(name.slice(prefix.length)));
    for (const number of this.#imported.keys()) if (!numbers.includes(number)) this.#imported.delete(number);
    for (const number of numbers) {
      if (this.#imported.has(number)) continue;
      const bytes = await vault.read(ofCluster, nameOf(number));
      if (bytes) this.#imported.set(number, await imported(number, bytes.toString("utf8")));
    }
    return (this.#last = { keys: [...this.#imported.values()], atMono });
  }
}

const nameOf = (number: number): string => `${prefix}${String(number).padStart(6, "0")}`;

async function imported(number: number, text: string): Promise<IssuerKey> {
  const { kid, signsFromMs, jwk } = Kept.parse(JSON.parse(text));
  const { kty, crv, x, y } = jwk as JWK;
  const shown = { kty, crv, x, y } as JWK;
  const privateKey = (await importJWK(jwk as JWK, algorithm)) as CryptoKey;
  const publicKey = (await importJWK(shown, algorithm)) as CryptoKey;
  return { number, kid, signsFromMs, privateKey, publicKey, jwk: { ...shown, kid, alg: algorithm, use: "sig" } };
}
