/**
 * The cluster's signing keys and the lists that tell machines which of them count. Each list is signed by the key that
 * signed before it, so that a machine that was away follows from the one that it knows to the newest.
 *
 * KB1 Of all nodes that write the next list, one succeeds.
 * KB2 A new key is in a list before it signs anything else.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { ofCluster } from "#vault/shared-key.ts";
import { keyIdOf, SignedDocument, type Signed, type Signer } from "#doors/deploy/signing/signing.ts";
import { keysMax, TrustList, type Trusted } from "#doors/deploy/signing/trust.ts";

const Kept = z.object({
  list: SignedDocument,
  /** The vault's name of the key that signs from now on. */
  signs: z.string(),
  by: z.string(),
  atMs: z.number(),
});
const limits = { countMax: 1_000, bytesMax: 32 * 1024 * 1024 };
/** What another node wrote counts here after so long at the latest. */
const rememberedMs = 2_000;

export type KeyBookPorts = {
  readonly records: Records;
  readonly clock: Clock;
  /** The key of a cluster that has never had another one. */
  readonly first: () => Promise<Signer>;
  /** A key by its name in the vault; made when it is asked for first. */
  readonly signerOf: (name: string) => Promise<Signer>;
};

type Known = { readonly trusted: Trusted; readonly signer: Signer; readonly lists: readonly Signed[] };

export class KeyBook {
  readonly #ports: KeyBookPorts;
  readonly #lists;
  #known: Promise<Known> | undefined;
  #knownMs = -Infinity;

  constructor(ports: KeyBookPorts) {
    this.#ports = ports;
    this.#lists = recordsOf(ports.records, { kind: "deploy.trust", schema: Kept, limits });
  }

  async signer(): Promise<Signer> {
    return (await this.#look()).signer;
  }

  async trusted(): Promise<Trusted> {
    return (await this.#look()).trusted;
  }

  /** The lists that are newer, the oldest first. */
  async listsAfter(version: number): Promise<readonly Signed[]> {
    const { lists, trusted } = await this.#look();
    return version >= trusted.version ? [] : lists.slice(version);
  }

  /** A new key signs from now on; the old ones still count. Answers with its id. */
  async rotate(by: string): Promise<string> {
    const { trusted, signer } = await this.#fresh();
    if (trusted.keys.length >= keysMax)
      throw new Fault("exhausted", "rotate signing key", { keysMax, try: "revoke the oldest one first" });
    const name = `deploy.signing.${trusted.version + 1}`;
    const next = await this.#ports.signerOf(name);
    await this.#write({ ...trusted, keys: [...trusted.keys, next.publicPem] }, { by, signer, signs: name });
    return next.keyId;
  }

  /** What the key signed does not count any more; when it is the one that signs, another one takes its place first. */
  async revoke(key: string, by: string): Promise<void> {
    let known = await this.#fresh();
    const isKnown = known.trusted.keys.some((pem) => keyIdOf(pem) === key);
    if (!isKnown) throw new Fault("not-found", "revoke signing key", { key });
    if (known.signer.keyId === key) {
      await this.rotate(by);
      known = await this.#fresh();
    }
    const { trusted, signer } = known;
    const keys = trusted.keys.filter((pem) => keyIdOf(pem) !== key);
    const signs = await this.#nameOfSigner();
    await this.#write({ ...trusted, keys, revoked: [...trusted.revoked, key] }, { by, signer, signs });
  }

  async #write(
    { version, keys, revoked }: Trusted,
    { by, signer, signs }: { readonly by: string; readonly signer: Signer; readonly signs: string },
  ): Promise<void> {
    const list: TrustList = { format: 1, version: version + 1, keys: [...keys], revoked: [...revoked] };
    const signed = signer.sign("trust", JSON.stringify(TrustList.parse(list)));
    const kept = { list: signed, signs, by, atMs: this.#ports.clock.wallMs() };
    // KB1
    const { created } = await this.#lists.create(ofCluster, nameOf(list.version), kept);
    this.#known = undefined;
    if (!created) throw new Fault("stale", "change signing keys", { why: "they have just been changed", try: "again" });
  }

  async #nameOfSigner(): Promise<string> {
    const { version } = (await this.#fresh()).trusted;
    return version === 0 ? "" : ((await this.#lists.read(ofCluster, nameOf(version)))?.value.signs ?? "");
  }

  async #fresh(): Promise<Known> {
    this.#known = undefined;
    return await this.#look();
  }

  async #look(): Promise<Known> {
    const nowMs = this.#ports.clock.monotonicMs();
    if (this.#known && nowMs - this.#knownMs < rememberedMs) return await this.#known;
    const read = this.#read();
    this.#known = read;
    this.#knownMs = nowMs;
    read.catch(() => {
      if (this.#known === read) this.#known = undefined;
    });
    return await read;
  }

  async #read(): Promise<Known> {
    const kept: z.output<typeof Kept>[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await this.#lists.list({ tenant: ofCluster, limit: 200, cursor });
      kept.push(...page.records.map(({ value }) => value));
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    const lists = kept.map(({ list }) => list).toSorted((a, b) => versionIn(a) - versionIn(b));
    const newest = lists.at(-1);
    const signs = kept.find(({ list }) => list === newest)?.signs ?? "";
    // A key that the configuration names is where the lists begin; from the first change on, the vault's sign.
    const signer = signs === "" ? await this.#ports.first() : await this.#ports.signerOf(signs);
    const { version, keys, revoked } = newest
      ? TrustList.parse(JSON.parse(newest.body))
      : { version: 0, keys: [signer.publicPem], revoked: [] };
    const trusted = { version, keys, revoked };
    return { trusted, signer, lists };
  }
}

const nameOf = (version: number): string => String(version).padStart(8, "0");
const versionIn = ({ body }: Signed): number => (JSON.parse(body) as TrustList).version;
