/**
 * The newest items of all shards on one node, for its readers: follows the owner of every shard while there is a
 * reader, and for a while after the last one. A hundred readers cost an owner one.
 *
 * FH1 Each shard's items are kept in order and without a gap, across moves and failures of owners: what an owner no
 *     longer has, or never had, is read from the log before what follows is taken.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Seq } from "#journal/journal.ts";
import type { FeedAnswer, FeedQuestion } from "./desk.ts";
import type { ReplayedFeed } from "./replayed.ts";
import { FeedRing } from "./ring.ts";

export type HubPorts = {
  readonly clock: Clock;
  readonly shards: () => number;
  /** Who owns the shard, as far as this node knows; "" is this node itself. */
  readonly ownerOf: (shard: ShardId) => string | undefined;
  readonly ask: (owner: string, question: FeedQuestion, signal: AbortSignal) => Promise<readonly FeedAnswer[]>;
  readonly replayed: ReplayedFeed;
  readonly tailOf: (shard: ShardId) => Promise<Seq>;
  readonly report: (doing: string, error: unknown) => void;
  readonly settings?: Partial<HubSettings>;
};

export type HubSettings = {
  /** Kept for all shards together. */
  readonly bytesMax: number;
  readonly waitMs: number;
  readonly lookMs: number;
  readonly retryMs: number;
  /** Other nodes are not asked more often than this: what comes meanwhile comes together. */
  readonly gatherMs: number;
  readonly lingerMs: number;
};

export const hubDefaults: HubSettings = {
  bytesMax: 64 << 20,
  waitMs: 5_000,
  lookMs: 250,
  retryMs: 200,
  gatherMs: 5,
  lingerMs: 60_000,
};

/** How long an answer may be on its way before its owner counts as silent. */
const answerMs = 2_000;

type Lane = { shards: ReadonlySet<ShardId>; abort: AbortController };

export class FeedHub {
  readonly #ports: HubPorts;
  readonly #settings: HubSettings;
  readonly #rings = new Map<ShardId, FeedRing>();
  readonly #lanes = new Map<string, Lane>();
  /** When a shard's owner answered last, by the monotonic clock. */
  readonly #heard = new Map<ShardId, number>();
  /** Shards that the owner we know does not serve; until the next look. */
  readonly #homeless = new Set<ShardId>();
  readonly #wakes = new Set<() => void>();
  #readers = 0;
  #leftMono = 0;
  #isRunning = false;
  #isStopped = false;
  #starting: Promise<void> | undefined;

  constructor(ports: HubPorts) {
    this.#ports = ports;
    this.#settings = { ...hubDefaults, ...ports.settings };
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get readers(): number {
    return this.#readers;
  }

  /** For how long the owner of some shard has not answered; a question may take as long as it waits for news. */
  get silentMs(): number {
    const nowMono = this.#ports.clock.monotonicMs();
    const silentMs = this.#heard.values().reduce((most, atMono) => Math.max(most, nowMono - atMono), 0);
    return silentMs > this.#settings.waitMs + answerMs ? silentMs : 0;
  }

  /** Where a shard's newest items are; undefined if there was no reader for long. */
  ring(shard: ShardId): FeedRing | undefined {
    return this.#rings.get(shard);
  }

  /** The newest batch of the shard's log. */
  tailOf(shard: ShardId): Promise<Seq> {
    return this.#ports.tailOf(shard);
  }

  /** Follows all shards from now on; every reader must leave. Resolves when each shard's place is known. */
  async join(): Promise<void> {
    this.#readers += 1;
    try {
      if (!this.#isRunning) this.#starting = this.#start();
      await this.#starting;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  leave(): void {
    this.#readers -= 1;
    this.#leftMono = this.#ports.clock.monotonicMs();
  }

  stop(): void {
    this.#isStopped = true;
    for (const { abort } of this.#lanes.values()) abort.abort();
    this.#wakeAll();
  }

  /** Resolves when there may be something new; at the latest after the time. */
  async news(waitMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#isStopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const cancel = this.#ports.clock.after(waitMs, wake);
    this.#wakes.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    this.#wakes.delete(wake);
    cancel();
  }

  /** Owners have changed: look at once. */
  look(): void {
    if (this.#isRunning && !this.#isStopped) this.#look();
  }

  async #start(): Promise<void> {
    this.#isRunning = true;
    const { shards, tailOf } = this.#ports;
    const bytesMax = Math.max(64 << 10, Math.floor(this.#settings.bytesMax / shards()));
    try {
      const all = Array.from({ length: shards() }, (_, shard) => shard);
      await inTurns(all, 16, async (shard) => {
        this.#rings.set(shard, new FeedRing(await tailOf(shard), bytesMax));
        this.#heard.set(shard, this.#ports.clock.monotonicMs());
      });
    } catch (error) {
      this.#isRunning = false;
      this.#rings.clear();
      this.#heard.clear();
      throw error;
    }
    this.#tick();
  }

  #tick(): void {
    const { clock } = this.#ports;
    if (this.#isStopped) return;
    if (this.#readers === 0 && clock.monotonicMs() - this.#leftMono > this.#settings.lingerMs) return this.#rest();
    this.#homeless.clear();
    this.#look();
    clock.after(this.#settings.lookMs, () => this.#tick());
  }

  #rest(): void {
    this.#isRunning = false;
    // A lane that is still waiting must end even if a reader joins before it looks: there is no ring for it yet.
    for (const lane of this.#lanes.values()) {
      lane.shards = new Set();
      lane.abort.abort();
    }
    this.#lanes.clear();
    this.#rings.clear();
    this.#heard.clear();
  }

  /** One lane for each owner; a lane whose shards have changed asks again at once. */
  #look(): void {
    const wanted = new Map<string, Set<ShardId>>();
    for (const shard of this.#rings.keys()) {
      const owner = this.#homeless.has(shard) ? undefined : this.#ports.ownerOf(shard);
      if (owner === undefined) continue;
      const shards = wanted.get(owner);
      if (shards) shards.add(shard);
      else wanted.set(owner, new Set([shard]));
    }
    for (const [owner, lane] of this.#lanes) {
      const shards = wanted.get(owner) ?? new Set<ShardId>();
      const isSame = shards.size === lane.shards.size && [...shards].every((shard) => lane.shards.has(shard));
      lane.shards = shards;
      if (!isSame) lane.abort.abort();
    }
    for (const [owner, shards] of wanted)
      if (!this.#lanes.has(owner)) {
        const lane = { shards, abort: new AbortController() };
        this.#lanes.set(owner, lane);
        void this.#follow(owner, lane);
      }
  }

  async #follow(owner: string, lane: Lane): Promise<void> {
    const { clock, ask, report } = this.#ports;
    const { waitMs, retryMs, gatherMs } = this.#settings;
    for (let turn = 0; lane.shards.size > 0 && this.#isRunning && !this.#isStopped; turn += 1) {
      lane.abort = new AbortController();
      // Another one first each time: an answer may be full before the last.
      const all = [...lane.shards];
      const first = turn % all.length;
      const inTurn = [...all.slice(first), ...all.slice(0, first)];
      const shards = inTurn.map((shard) => ({ shard, after: this.#rings.get(shard)?.through }));
      try {
        const answers = await ask(owner, { shards, waitMs }, lane.abort.signal);
        this.#hear(shards, answers);
        for (const answer of answers) await this.#take(answer);
        if (owner !== "" && gatherMs > 0) await clock.sleep(gatherMs);
      } catch (error) {
        if (lane.abort.signal.aborted) continue;
        if (!isFault(error, "unavailable")) {
          report("follow the event feed", error);
          await this.#fillAll(shards.map(({ shard }) => shard)).catch(() => {}); // tried again with the next question
        }
        await clock.sleep(retryMs);
      }
    }
    if (this.#lanes.get(owner) === lane) this.#lanes.delete(owner);
  }

  #hear(shards: FeedQuestion["shards"], answers: readonly FeedAnswer[]): void {
    const elsewhere = new Set(answers.filter(({ kind }) => kind === "elsewhere").map(({ shard }) => shard));
    const nowMono = this.#ports.clock.monotonicMs();
    for (const { shard } of shards) if (!elsewhere.has(shard)) this.#heard.set(shard, nowMono);
  }

  async #take(answer: FeedAnswer): Promise<void> {
    const { shard } = answer;
    const ring = this.#rings.get(shard);
    if (!ring) return;
    if (answer.kind === "elsewhere") {
      this.#homeless.add(shard);
      return this.#look();
    }
    if (answer.kind === "behind") await this.#fill(ring, shard, answer.after);
    else if (!ring.extend(answer.after, answer.through, answer.batches)) await this.#fill(ring, shard, answer.after);
    this.#wakeAll();
  }

  /** What the owner does not have is in the log. */
  async #fill(ring: FeedRing, shard: ShardId, until: Seq): Promise<void> {
    while (ring.through < until) {
      const after = ring.through;
      const { batches, through } = await this.#ports.replayed.slice(shard, after, until);
      if (through === after) return; // the owner is ahead of what we may read: ask again
      ring.extend(after, through, batches);
    }
  }

  /** Whatever keeps an owner from answering, such as an answer that is too long for it: the log has the same. */
  async #fillAll(shards: readonly ShardId[]): Promise<void> {
    for (const shard of shards) {
      const ring = this.#rings.get(shard);
      if (ring) await this.#fill(ring, shard, await this.#ports.tailOf(shard));
    }
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wakes) wake();
    this.#wakes.clear();
  }
}

/** Runs over all, so many at once. */
async function inTurns<T>(items: readonly T[], atOnce: number, run: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: Math.min(atOnce, items.length) }, async () => {
      for (const item of left) await run(item);
    }),
  );
}
