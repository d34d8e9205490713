/**
 * The feed of the shards that this node owns: keeps the newest items of each while there are readers, and lends them
 * to the hubs of all nodes. Items are collected only while they are wanted: a feed without readers costs nothing.
 *
 * FD1 Only durable batches are lent, each shard's in order and without a gap (`FeedRing`).
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Seq } from "#journal/journal.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { FeedRing, sizesOf, type FeedBatch } from "./ring.ts";

/** What a hub asks a node: what follows in each shard. Without `after`: where the shard is now. */
export type FeedQuestion = {
  readonly shards: readonly { readonly shard: ShardId; readonly after?: Seq | undefined }[];
  readonly waitMs: number;
};

export type FeedAnswer =
  /** Everything after the batch that was asked for, up to `through`. */
  | {
      readonly kind: "news";
      readonly shard: ShardId;
      readonly after: Seq;
      readonly through: Seq;
      readonly batches: readonly FeedBatch[];
    }
  /** What follows is not here any more, or not yet: only what follows `after`. Read the log up to there. */
  | { readonly kind: "behind"; readonly shard: ShardId; readonly after: Seq }
  /** The shard is not served here. */
  | { readonly kind: "elsewhere"; readonly shard: ShardId };

export type DeskSettings = {
  /** Items kept for each shard. */
  readonly ringBytesMax: number;
  /** Items in one answer, of all shards. */
  readonly answerItemsMax: number;
  /** The same in bytes, for other nodes: a message between nodes has a limit. */
  readonly answerBytesMax: number;
  /** How long items are collected after the last question. */
  readonly lingerMs: number;
};

export const deskDefaults: DeskSettings = {
  ringBytesMax: 2 << 20,
  answerItemsMax: 2_000,
  answerBytesMax: 12 << 20, // a message has 16 MiB at most
  lingerMs: 300_000,
};

type Served = { readonly hosted: HostedShard; readonly ring: FeedRing; wantedUntilMono: number };

export class FeedDesk implements ShardObserver {
  readonly #clock: Clock;
  readonly #settings: DeskSettings;
  readonly #served = new Map<ShardId, Served>();
  readonly #waiting = new Set<{ readonly shards: ReadonlySet<ShardId>; readonly wake: () => void }>();
  /** Called when a shard came or went. */
  onMove: (() => void) | undefined;

  constructor(clock: Clock, settings: DeskSettings = deskDefaults) {
    this.#clock = clock;
    this.#settings = settings;
  }

  adopted(hosted: HostedShard): void {
    const ring = new FeedRing(hosted.seq, this.#settings.ringBytesMax);
    this.#served.set(hosted.shard, { hosted, ring, wantedUntilMono: Number.NEGATIVE_INFINITY });
    this.onMove?.();
  }

  durable(hosted: HostedShard, { stamp, feed }: SealedBatch): void {
    const served = this.#served.get(hosted.shard);
    if (served?.hosted !== hosted) return;
    if (feed) served.ring.extend(stamp.seq - 1, stamp.seq, [{ seq: stamp.seq, items: feed }]);
    else served.ring.reset(stamp.seq);
    this.#wake(hosted.shard);
    if (served.wantedUntilMono < this.#clock.monotonicMs()) hosted.feed(false);
  }

  gone(hosted: HostedShard): void {
    if (this.#served.get(hosted.shard)?.hosted !== hosted) return;
    this.#served.delete(hosted.shard);
    this.#wake(hosted.shard);
    this.onMove?.();
  }

  serves(shard: ShardId): boolean {
    return this.#served.has(shard);
  }

  /** Answers when there is something to say of one of the shards, or when the time is over. */
  async ask(
    { shards, waitMs }: FeedQuestion,
    signal: AbortSignal,
    bytesMax = this.#settings.answerBytesMax,
  ): Promise<readonly FeedAnswer[]> {
    const now = this.#look(shards, bytesMax);
    if (now.length > 0 || waitMs <= 0 || signal.aborted) return now;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const waiting = { shards: new Set(shards.map(({ shard }) => shard)), wake };
    const cancel = this.#clock.after(waitMs, wake);
    this.#waiting.add(waiting);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    this.#waiting.delete(waiting);
    cancel();
    return this.#look(shards, bytesMax);
  }

  #look(shards: FeedQuestion["shards"], bytesMax: number): readonly FeedAnswer[] {
    const answers: FeedAnswer[] = [];
    const room = { items: this.#settings.answerItemsMax, bytes: bytesMax, bytesMax };
    for (const { shard, after } of shards) {
      const served = this.#served.get(shard);
      if (!served || served.hosted.phase === "taking-over") {
        answers.push({ kind: "elsewhere", shard });
        continue;
      }
      this.#want(served);
      const answer = answerOf(served, after, room);
      if (!answer) continue;
      answers.push(answer);
      if (answer.kind === "news")
        for (const { items } of answer.batches) {
          room.items -= items.length;
          room.bytes -= sizesOf(items).wireBytes;
        }
      if (room.items <= 0 || room.bytes <= 0) break;
    }
    return answers;
  }

  #want(served: Served): void {
    served.wantedUntilMono = this.#clock.monotonicMs() + this.#settings.lingerMs;
    if (served.hosted.isFed) return;
    served.ring.reset(served.hosted.durableSeq);
    served.hosted.feed(true);
  }

  #wake(shard: ShardId): void {
    for (const { shards, wake } of this.#waiting) if (shards.has(shard)) wake();
  }
}

type Room = { readonly items: number; readonly bytes: number; readonly bytesMax: number };

function answerOf({ hosted, ring }: Served, after: Seq | undefined, room: Room): FeedAnswer | undefined {
  const { shard } = hosted;
  if (after === undefined) return { kind: "news", shard, after: ring.through, through: ring.through, batches: [] };
  if (after < ring.after) return { kind: "behind", shard, after: ring.after };
  const news = ring.since(after, room.items, room.bytes);
  if (!news || news.through <= after) {
    // A batch that is too large for an answer of its own never will be in one: it is read from the log.
    const isTooLarge = news?.isFull === true && room.bytes === room.bytesMax;
    return isTooLarge ? { kind: "behind", shard, after: after + 1 } : undefined;
  }
  const { batches, through } = news;
  return { kind: "news", shard, after, through, batches };
}
