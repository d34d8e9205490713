/**
 * Keeps what a service may still run or go back to: its newest goal, the release that it names, the one that ended well
 * last and the one before, with all their segments and packs, under one name for each service and region.
 *
 * KR1 A release that a goal names, or that its service may be rolled back to, is not evicted, however old it is.
 */
import type { Clock } from "#base/clock.ts";
import { isDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { parsePack } from "#doors/deploy/delta/pack.ts";
import { distinctSegments, parseManifest } from "#doors/deploy/manifest/manifest.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { Keeps } from "#retention/keeps.ts";
import type { At, GoalStore, Head } from "./goals.ts";
import { readWhole } from "./whole.ts";

export type KeptReleasesPorts = {
  readonly keeps: Pick<Keeps, "keep" | "records">;
  readonly store: Store;
  readonly goals: Pick<GoalStore, "stable">;
  readonly clock: Pick<Clock, "wallMs">;
};

const day = 24 * 3_600_000;
/** From the last look: a region whose nodes are away for that long has lost its releases. */
const keptMs = 35 * day;
const againMs = 7 * day;

export class KeptReleases {
  readonly #ports: KeptReleasesPorts;
  /** By name: what was kept, and when that is due again. */
  readonly #known = new Map<string, { readonly goal: Digest; readonly dueMs: number }>();

  constructor(ports: KeptReleasesPorts) {
    this.#ports = ports;
  }

  /** Cheap when nothing has changed since it was called last. */
  async keep(at: At, head: Head): Promise<void> {
    const { keeps, store, clock } = this.#ports;
    const { tenant, service, region } = at;
    const name = `deploy/${region}/${service}`;
    const nowMs = clock.wallMs();
    const known = this.#known.get(`${tenant}/${name}`);
    if (known?.goal === head.entry.digest && known.dueMs > nowMs) return;
    const { blobs } = store.forTenant(tenant);
    const text = [...(await this.#digestsOf(at, head, blobs))].toSorted().join("\n");
    const list = sha256Digest(Buffer.from(text));
    const before = (await keeps.records.read(tenant, name))?.value;
    const isKept = before?.lists.includes(list) === true && before.untilMs - nowMs > keptMs - againMs;
    if (!isKept) {
      await blobs.write(list, Buffer.from(text));
      const about = `what ${service} may run in ${region}`;
      await keeps.keep({ tenant, name, door: "deploy", about, untilMs: nowMs + keptMs, lists: [list] });
    }
    this.#known.set(`${tenant}/${name}`, { goal: head.entry.digest, dueMs: nowMs + againMs / 7 });
  }

  async #digestsOf(at: At, { goal, entry }: Head, blobs: BlobStore): Promise<ReadonlySet<Digest>> {
    const stable = await this.#ports.goals.stable(at);
    const all = new Set<Digest>([entry.digest]);
    for (const manifest of [goal.manifest, goal.stable, stable?.manifest, stable?.before])
      if (manifest && isDigest(manifest)) for (const digest of await releaseOf(manifest, blobs)) all.add(digest);
    return all;
  }
}

/** All that a machine fetches of it. Nothing where it is gone already: what is left of it is of no use. */
async function releaseOf(manifest: Digest, blobs: BlobStore): Promise<readonly Digest[]> {
  try {
    const { body } = JSON.parse(await readWhole(blobs, manifest)) as Signed;
    const { files, alternatives = [] } = parseManifest(body);
    const packs = alternatives.map(({ pack }) => pack);
    const packed: Digest[] = [];
    for (const pack of packs) packed.push(...parsePack(await readWhole(blobs, pack)).segments);
    const all = [manifest, ...distinctSegments({ files }), ...packs, ...packed];
    return (await blobs.missing(all)).length === 0 ? all : [];
  } catch (error) {
    if (isFault(error, "not-found")) return [];
    throw error;
  }
}
