/**
 * The journal's store as a separate machine, reached over an unreliable network: the Journal port over the real memory
 * store, with delays, refusals, lost answers (done or not), appends that take effect long after their sender gave up,
 * outages, and a clock that drifts and jumps.
 *
 * DB1 "unavailable" is answered only for what was not done. "unknown-outcome" may be either.
 * DB2 One call is one instant at the store: what it does happens between two events of the world.
 */
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Acquired, AppendResult, Batch, Journal, Snapshot } from "#journal/journal.ts";
import { memoryStore, type MemoryStore } from "#journal/memory/memory.ts";
import type { Life, Machine } from "./machine.ts";
import type { World } from "./world.ts";

export type DatabaseConditions = {
  latencyMs: number;
  spikeMs: number;
  spikeChance: number;
  /** Refused, not done. */
  unavailableChance: number;
  /** Sent, not done, without an answer. */
  lostChance: number;
  /** Done, without an answer. */
  unheardChance: number;
  /** No answer, and it is done up to `lateMs` later. */
  lateChance: number;
  lateMs: number;
  /** How long a caller waits for an answer. */
  patienceMs: number;
  /** "down" refuses, "mute" accepts calls and never answers; neither does anything. */
  outage: "none" | "down" | "mute";
};

export type DatabaseObserver = {
  appending(by: Life, batches: readonly Batch[]): void;
  /** A life has sent a request that its commits wait for (1), or has its answer or has given up (-1). */
  busy(by: Life, more: 1 | -1): void;
  /** Called at the instant in which the batches became durable, or did not. */
  appended(by: Life, batches: readonly Batch[], result: AppendResult): void;
  acquired(by: Life, shard: number, answer: Acquired): void;
  released(by: Life, shard: number): void;
  injected(kind: string): void;
};

type CallOutcome = "done" | "refused" | "lost" | "unheard" | "late";

export class Database {
  readonly conditions: DatabaseConditions;
  readonly machine: Machine;
  readonly store: MemoryStore;
  /** Machines that cannot reach the database, by name. */
  readonly cutOff = new Set<string>();
  readonly #world: World;
  readonly #random: Random;
  readonly #observer: DatabaseObserver;

  constructor(machine: Machine, random: Random, conditions: DatabaseConditions, observer: DatabaseObserver) {
    this.machine = machine;
    this.#world = machine.world;
    this.#random = random;
    this.conditions = conditions;
    this.#observer = observer;
    const { clock } = machine.boot();
    this.store = memoryStore(() => clock.wallMs());
  }

  connect(life: Life): Journal {
    const inner = this.store.connect();
    const write = this.#wrap(life, inner, true);
    const look = this.#wrap(life, inner, false);
    return {
      ...look("cluster", "segments", "findKeys", "ownerships", "nodes", "describe"),
      ...write("open", "recordSegment", "trim", "trimKeys", "renew", "announce", "raiseFeatureLevel"),
      append: (batches) => {
        const sent = this.#busily(life, "append", true, async () => {
          const result = await inner.append(batches);
          this.#observer.appended(life, batches, result);
          return result;
        });
        this.#observer.appending(life, batches);
        return sent;
      },
      confirm: (owned) => this.#busily(life, "confirm", false, () => inner.confirm(owned)),
      tail: (shard) => this.#busily(life, "tail", false, () => inner.tail(shard)),
      acquire: (shard, node, wanted) =>
        this.#call(life, "acquire", true, async () => {
          const answer = await inner.acquire(shard, node, wanted);
          this.#observer.acquired(life, shard, answer);
          return answer;
        }),
      release: (shard, epoch, successor) =>
        this.#call(life, "release", true, async () => {
          await inner.release(shard, epoch, successor);
          this.#observer.released(life, shard);
        }),
      read: (shard, fromSeq) => this.#stream(life, "read", () => inner.read(shard, fromSeq)),
      saveSnapshot: (shard, at, chunks) => inner.saveSnapshot(shard, at, this.#upload(life, chunks)),
      loadSnapshot: async (shard) => {
        const found = await this.#call(life, "loadSnapshot", false, () => inner.loadSnapshot(shard));
        return found && ({ ...found, chunks: this.#stream(life, "chunk", () => found.chunks) } satisfies Snapshot);
      },
      history: {
        ...this.#wrap(life, inner.history, true)("record", "reset", "trim"),
        ...this.#wrap(life, inner.history, false)("cursor", "job", "jobs", "count"),
      },
      entries: {
        ...this.#wrap(life, inner.entries, true)("add", "replace", "remove"),
        ...this.#wrap(life, inner.entries, false)("read"),
      },
      records: {
        ...this.#wrap(life, inner.records, true)("create", "createAll", "replace", "remove"),
        ...this.#wrap(life, inner.records, false)("read", "list", "changes", "newest"),
      },
      close: async () => {},
    };
  }

  /** The functions of a port, each as a call over the network. */
  #wrap<P extends object>(life: Life, port: P, writes: boolean) {
    return <K extends keyof P & string>(...names: readonly K[]): Pick<P, K> =>
      Object.fromEntries(
        names.map((name) => {
          const run = port[name] as (...args: unknown[]) => Promise<unknown>;
          return [name, (...args: unknown[]) => this.#call(life, name, writes, () => run(...args))];
        }),
      ) as Pick<P, K>;
  }

  async #busily<R>(life: Life, name: string, writes: boolean, run: () => Promise<R>): Promise<R> {
    this.#observer.busy(life, 1);
    try {
      return await this.#call(life, name, writes, run);
    } finally {
      this.#observer.busy(life, -1);
    }
  }

  #call<R>(life: Life, name: string, writes: boolean, run: () => Promise<R>): Promise<R> {
    const fate = this.#draw(name, writes);
    return new Promise<R>((resolve, reject) => {
      const fail = (code: "unavailable" | "unknown-outcome") => {
        this.#world.say(`${life.name} db ${name} ${code}`);
        reject(new Fault(code, name, { why: "simulated" }));
      };
      const isCutOff = this.cutOff.has(life.machine.name);
      if (isCutOff) this.#world.say(`${life.name} db ${name} is cut off`);
      const silence = writes ? "unknown-outcome" : "unavailable";
      if (fate === "refused" || (isCutOff && this.#random.chance(0.5)))
        return void life.after(this.#delay(), () => fail("unavailable"));
      const cancel = life.after(this.conditions.patienceMs, () => fail(silence));
      if (fate === "lost" || isCutOff) return;
      const wayMs = this.#delay() + (fate === "late" ? this.#random.fraction() * this.conditions.lateMs : 0);
      this.#world.after(wayMs, undefined, () => {
        if (this.conditions.outage !== "none") {
          // A call that arrives in an outage is not done; a database that is down says so, a mute one does not.
          if (this.conditions.outage === "down") life.after(this.#delay(), () => (cancel(), fail("unavailable")));
          return;
        }
        const answered = (settle: () => void) => {
          if (fate === "unheard" || fate === "late") return;
          life.after(this.#delay(), () => (cancel(), settle()));
        };
        run().then(
          (value) => {
            this.#world.say(`${life.name} db ${name} = ${summary(name, value)}`);
            answered(() => resolve(value));
          },
          (error: Error) => {
            this.#world.say(`${life.name} db ${name} ! ${error.message}`);
            answered(() => reject(error));
          },
        );
      });
    });
  }

  async *#stream<T>(life: Life, name: string, open: () => AsyncIterable<T>): AsyncGenerator<T> {
    await this.#call(life, name, false, async () => {});
    let sent = 0;
    for await (const item of open()) {
      yield item;
      sent += 1;
      // A page of records arrives at once; then another call over the network.
      if (sent % streamPage === 0) await this.#call(life, name, false, async () => {});
    }
  }

  async *#upload(life: Life, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      // The uploader may crash here, between two chunks: then the rest never arrives (a torn write).
      await this.#call(life, "chunk", false, async () => {});
      yield chunk;
    }
    await this.#call(life, "snapshot", false, async () => {});
  }

  #draw(name: string, writes: boolean): CallOutcome {
    const { unavailableChance, lostChance, unheardChance, lateChance } = this.conditions;
    let draw = this.#random.fraction();
    const fate = (kind: CallOutcome, chance: number): boolean => {
      if (draw < chance) {
        this.#observer.injected(`journal-${kind}`);
        this.#world.say(`db will be ${kind}: ${name}`);
        return true;
      }
      draw -= chance;
      return false;
    };
    if (fate("refused", unavailableChance)) return "refused";
    if (fate("lost", lostChance)) return "lost";
    if (!writes) return "done";
    if (fate("unheard", unheardChance)) return "unheard";
    return fate("late", lateChance) ? "late" : "done";
  }

  #delay(): number {
    const { latencyMs, spikeMs, spikeChance } = this.conditions;
    const spike = spikeChance > 0 && this.#random.chance(spikeChance) ? this.#random.fraction() * spikeMs : 0;
    return latencyMs * (0.5 + this.#random.fraction()) + spike;
  }
}

const streamPage = 64;

/** Calls that are too frequent to be worth a line in the trace. */
const dull = new Set(["nodes", "ownerships"]);

function summary(name: string, value: unknown): string {
  if (value === undefined) return "done";
  if (dull.has(name)) return "read";
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}... (${text.length})` : text;
}
