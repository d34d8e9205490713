/** For the tests of this folder: nodes on a clock that the test controls, over a journal that can be made to fail. */
import { must } from "#base/assert.ts";
import { Fault, type FaultCode } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import { createMemoryBlobs, type MemoryBlobs } from "#blobs/memory/memory.ts";
import type { Command, CommandOf, Submit } from "#kernel/model/command.ts";
import type { Grant, TaskTemplate } from "#kernel/model/model.ts";
import type { Query } from "#kernel/read/query.ts";
import type { Journal } from "#journal/journal.ts";
import { memoryStore, type MemoryStore } from "#journal/memory/memory.ts";
import { Node, type NodeOptions } from "#shard/node.ts";
import type { ShardRequest, ShardResponse, ShardService } from "#shard/transport/protocol.ts";
import type { Transport } from "#shard/transport/transport.ts";

type Op = keyof Omit<Journal, "history">;
/**
 * What happens to the next calls of an operation. "lost": it is done, and the caller gets an unknown outcome. "late":
 * it is done when `deliver` is called. "answered late": it is done at once, the answer comes with `deliver`.
 */
type Mishap = FaultCode | "lost" | "stuck" | "late" | "answered late";

export class Rig {
  readonly clock = new ManualClock();
  readonly store: MemoryStore = memoryStore(() => this.clock.wallMs());
  readonly blobs: MemoryBlobs = createMemoryBlobs({ clock: this.clock, sizeBytesMax: 1 << 24 });
  readonly reports: string[] = [];
  /** Served nodes by address, as a network would know them. */
  readonly network = new Map<string, ShardService>();

  async node(id = "a", options: Partial<NodeOptions> = {}): Promise<TestNode> {
    const journal = new FlakyJournal(this.store.connect(), this.clock);
    const node = new Node({
      id,
      clock: this.clock,
      journal: journal.asJournal,
      blobs: this.blobs,
      random: new Random(id),
      transport: this.#transport(id),
      cluster: { shards: 1, clusterId: "test" },
      report: (doing, error) => this.reports.push(`${id}: ${doing}: ${String(error)}`),
      ...options,
    });
    await node.start();
    return Object.assign(new TestNode(node, journal, this.clock), {});
  }

  #transport(id: string): Transport {
    const address = `mem://${id}`;
    return {
      request: async (to, request) => {
        const service = this.network.get(to);
        if (!service) throw new Fault("unavailable", "request", { to });
        return service.request(JSON.parse(JSON.stringify(request)) as ShardRequest);
      },
      watch: (to, request, signal) => must(this.network.get(to), to).watch(request, signal),
      listen: async (service) => {
        this.network.set(address, service);
        return { address, close: async () => void this.network.delete(address) };
      },
      close: async () => {},
    };
  }
}

export class TestNode {
  readonly node: Node;
  readonly journal: FlakyJournal;
  readonly #clock: ManualClock;

  constructor(node: Node, journal: FlakyJournal, clock: ManualClock) {
    this.node = node;
    this.journal = journal;
    this.#clock = clock;
  }

  /** Lets time pass until the shards are served here. */
  async serving(shards: readonly number[] = [0], limitMs = 30_000): Promise<this> {
    const serves = (shard: number): boolean => this.node.host.shards.get(shard)?.phase === "serving";
    for (let passedMs = 0; !shards.every(serves); passedMs += 10) {
      if (passedMs > limitMs) throw new Error(`shards ${shards.join()} are not served`);
      await this.#clock.advance(10);
    }
    return this;
  }

  ask(command: Command, waitMs?: number, signal?: AbortSignal): Promise<ShardResponse> {
    const request: ShardRequest = { kind: "command", shard: 0, command, ...(waitMs === undefined ? {} : { waitMs }) };
    return this.node.request(request, signal);
  }

  query(query: Query): Promise<ShardResponse> {
    return this.node.request({ kind: "query", shard: 0, query });
  }

  /** The reply to a command that must be accepted. */
  async reply<T>(command: Command): Promise<T> {
    return replyOf<T>(await this.ask(command));
  }

  async grants(count = 10): Promise<readonly Grant[]> {
    return (await this.reply<{ grants: readonly Grant[] }>(reserve({ count, nonce: `n${(nonces += 1)}` }))).grants;
  }
}

let nonces = 0;

export function replyOf<T>(response: ShardResponse): T {
  if (response.kind !== "reply") throw new Error(`not a reply: ${JSON.stringify(response)}`);
  return response.reply as T;
}

/** A journal whose next calls fail as the test says. */
export class FlakyJournal {
  readonly asJournal: Journal;
  readonly calls = new Map<Op, number>();
  readonly #inner: Journal;
  readonly #clock: ManualClock;
  readonly #mishaps = new Map<Op, Mishap[]>();
  readonly #down = new Set<Op>();
  readonly #late: (() => void)[] = [];

  constructor(inner: Journal, clock: ManualClock) {
    this.#inner = inner;
    this.#clock = clock;
    this.asJournal = new Proxy(inner, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== "function" || name === "read") return value;
        return (...args: unknown[]) => this.#call(name as Op, args);
      },
    });
  }

  /** The next calls of the operation fail in these ways, one after the other. */
  fail(op: Op, ...mishaps: readonly Mishap[]): void {
    this.#mishaps.set(op, [...(this.#mishaps.get(op) ?? []), ...mishaps]);
  }

  /** Unavailable until `up`. */
  down(): void {
    for (const op of ["append", "confirm", "tail", "renew", "acquire", "announce", "nodes", "ownerships"] as const)
      this.#down.add(op);
  }

  up(): void {
    this.#down.clear();
  }

  /** Lets delayed calls and answers through now. */
  deliver(): void {
    for (const run of this.#late.splice(0)) run();
  }

  count(op: Op): number {
    return this.calls.get(op) ?? 0;
  }

  async #call(op: Op, args: readonly unknown[]): Promise<unknown> {
    this.calls.set(op, this.count(op) + 1);
    const run = (): Promise<unknown> => (this.#inner[op] as (...rest: unknown[]) => Promise<unknown>)(...args);
    if (this.#down.has(op)) {
      await this.#clock.sleep(5);
      throw new Fault("unavailable", op, { why: "down" });
    }
    const mishap = this.#mishaps.get(op)?.shift();
    if (mishap === undefined) return run();
    if (mishap === "stuck") return new Promise(() => {});
    if (mishap === "late")
      return new Promise((resolve, reject) => this.#late.push(() => void run().then(resolve, reject)));
    if (mishap === "answered late") {
      const done = run();
      await new Promise<void>((resolve) => this.#late.push(resolve));
      return done;
    }
    if (mishap === "lost") {
      await run();
      throw new Fault("unknown-outcome", op, { why: "lost" });
    }
    throw new Fault(mishap, op, { why: "flaky" });
  }
}

export const template: TaskTemplate = {
  kind: "shell",
  requires: [],
  leaseMs: 5_000,
  attemptsMax: 3,
  retryOn: "infrastructure",
  backoffMs: 100,
  backoffMsMax: 1_000,
  queueMs: 3_600_000,
  attemptMs: 3_600_000,
  effects: "pure",
  speculate: false,
  graceMs: 1_000,
};

/** A job of one stage with this many tasks. */
export function submit(
  given: Partial<Submit> & {
    readonly tasks?: number;
    readonly requires?: readonly string[];
    readonly affinity?: string;
  } = {},
): Submit {
  const { tasks = 1, requires = [], affinity, ...rest } = given;
  const near = affinity === undefined ? {} : { affinity };
  const plans = Array.from({ length: tasks }, (_, i) => ({ key: `k${i}`, spec: `do ${i}`, ...near }));
  const set = { template: { ...template, requires }, tasks: plans };
  return {
    kind: "submit",
    tenant: "t",
    door: "shell",
    name: "job",
    payloadHash: "h",
    priority: 0,
    spec: "",
    deadlineMs: 86_400_000,
    stages: [{ name: "s", needs: [], after: "success", tasks: set, failFast: false, mayFail: false, parallelMax: 0 }],
    ...rest,
  };
}

export const joining = (mergeKey: string): Submit => ({
  ...submit({ mergeKey }),
  joinOnly: true,
  stages: [],
  deadlineMs: 0,
});

export const reserve = (given: Partial<CommandOf<"reserve">> = {}): CommandOf<"reserve"> => ({
  kind: "reserve",
  executor: "e1",
  offers: [],
  prefer: [],
  count: 1,
  start: true,
  nonce: "n1",
  ...given,
});

export const commit = (
  { task, token }: { readonly task: number; readonly token: number },
  given: Partial<CommandOf<"commit">> = {},
): CommandOf<"commit"> => ({
  kind: "commit",
  executor: "e1",
  task,
  token,
  result: { payload: "done", digests: [] },
  evidence: { digests: [], pinnedForMs: 0 },
  ...given,
});
