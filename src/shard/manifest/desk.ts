/**
 * Writes the manifests that are due, for all shards of one node, off the shards' own path: begun when the event that
 * asks for one is durable (U1), repeated until it is recorded, continued by the shard's next owner (U2), a few at once
 * with growing pauses between two tries (U3). See shard/outbox/outbox.ts, which does the same for results.
 */
import type { Clock } from "#base/clock.ts";
import { formatJob, type ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { writeManifest } from "./write.ts";

export type ManifestDeskPorts = {
  readonly clock: Clock;
  readonly blobs: BlobStore;
  /** Sends the command to the shard's own host. */
  readonly record: (shard: ShardId, command: CommandOf<"record-manifest">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

const atOnceMax = 4;
const backoffMs = 100;
const backoffMsMax = 30_000;
/** After its deadline a job still ends, and people still look at its results; clocks differ, too. */
const keptAfterMs = 24 * 3_600_000;

type Item = { readonly shard: HostedShard; readonly no: number; tries: number };

export class ManifestDesk implements ShardObserver {
  readonly #ports: ManifestDeskPorts;
  readonly #shards = new Set<HostedShard>();
  readonly #waiting: Item[] = [];
  #busy = 0;
  #stopped = false;

  constructor(ports: ManifestDeskPorts) {
    this.#ports = ports;
  }

  kill(): void {
    this.#stopped = true;
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    // The first batch is the take-over: continue what an earlier owner left.
    if (!this.#shards.has(shard)) {
      this.#shards.add(shard);
      for (const no of shard.state.manifests.keys()) this.#add(shard, no);
      return;
    }
    for (const event of events) if (event.kind === "manifest-due") this.#add(shard, event.no);
  }

  gone(shard: HostedShard): void {
    this.#shards.delete(shard);
  }

  #add(shard: HostedShard, no: number): void {
    this.#waiting.push({ shard, no, tries: 0 });
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    while (this.#busy < atOnceMax && !this.#stopped) {
      const item = this.#waiting.shift();
      if (!item) return;
      this.#busy += 1;
      void this.#try(item).finally(() => {
        this.#busy -= 1;
        this.#pump();
      });
    }
  }

  #isWanted({ shard, no }: Item): boolean {
    return !this.#stopped && this.#shards.has(shard) && shard.state.manifests.has(no);
  }

  async #try(item: Item): Promise<void> {
    const { shard, no } = item;
    const { blobs, record, report } = this.#ports;
    const stage = shard.state.manifests.get(no);
    if (!stage || !this.#isWanted(item)) return;
    if (shard.phase !== "serving" || !shard.leaseStands) return this.#later(item);
    const pinMs = Math.max(0, stage.job.deadlineAtMs - shard.nowMs()) + keptAfterMs;
    try {
      const written = await writeManifest(stage, { blobs, pinMs, isWanted: () => this.#isWanted(item) });
      if (written) await record(shard.shard, { kind: "record-manifest", no, ...written });
    } catch (error) {
      if (!this.#isWanted(item)) return;
      // Reported less and less often: the first time, the second, the fourth, the eighth...
      if (Number.isInteger(Math.log2(item.tries + 1)))
        report(`write the manifest of ${stage.shape.name} of ${formatJob(shard.shard, stage.job.no)}`, error);
      this.#later(item);
    }
  }

  #later(item: Item): void {
    item.tries += 1;
    const inMs = Math.min(backoffMsMax, backoffMs * 2 ** Math.min(item.tries, 20));
    this.#ports.clock.after(inMs, () => {
      if (!this.#isWanted(item)) return;
      this.#waiting.push(item);
      this.#pump();
    });
  }
}
