/**
 * For tests: pools over a Kubernetes double, with queues and runners that are simulated: a pod's runner registers,
 * takes one task and ends. Several nodes may keep the same pool.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Random } from "#base/random.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { PoolsConfig } from "#pools/pool-config.ts";
import { Pools } from "#pools/pools.ts";
import type { PoolWorker, Queue } from "#pools/queue.ts";
import { standingsIn } from "#pools/standing.ts";
import { realClock } from "#testing/real-clock.ts";
import { KubernetesDouble, type Rule } from "./api-double.ts";
import { NodesDouble, type RunningPod } from "./nodes-double.ts";

const token = "the node's";
const rules: readonly Rule[] = [
  { resources: ["pods"], verbs: ["list", "watch", "create", "delete"] },
  { resources: ["secrets"], verbs: ["create"] },
  { resources: ["events"], verbs: ["list"] },
];

/** Goes faster than the real one. */
export const fasterClock = (times: number): Clock => ({
  monotonicMs: () => realClock.monotonicMs() * times,
  wallMs: () => realClock.wallMs(),
  sleep: (ms, signal) => realClock.sleep(ms / times, signal),
  after: (ms, run) => realClock.after(ms / times, run),
});

export type RigOptions = {
  readonly max: number;
  readonly warm?: number;
  readonly clock?: Clock;
  readonly jobMs?: number;
  readonly pageMax?: number;
  /** Changes that watches can go back. */
  readonly kept?: number;
};

export class PoolRig implements AsyncDisposable {
  readonly api: KubernetesDouble;
  readonly nodes: NodesDouble;
  readonly #folder = mkdtempSync(join(tmpdir(), "millrace-pool-rig-"));
  readonly #options: RigOptions;
  readonly #clock: Clock;
  readonly #records;
  #url = "";
  readonly #keepers = new Set<Pools>();
  /** When each waiting task became ready. */
  readonly #waiting: number[] = [];
  readonly #workers = new Map<string, PoolWorker>();
  /** Registrations that are open: by id, the worker's name. */
  readonly tokens = new Map<string, string>();
  readonly waitedMs: number[] = [];
  done = 0;
  #made = 0;

  private constructor(options: RigOptions) {
    this.#options = options;
    this.#clock = options.clock ?? realClock;
    this.#records = watchedRecords(
      memoryRecords(() => realClock.wallMs()),
      realClock,
    );
    const { pageMax, kept } = options;
    const bounds = { ...(pageMax !== undefined && { pageMax }), ...(kept !== undefined && { kept }) };
    this.api = new KubernetesDouble({ namespace: "millrace-runners", token, rules, ...bounds });
    this.nodes = new NodesDouble({ api: this.api, images: new Set(["r:1"]), run: (_pod, secret) => this.#run(secret) });
  }

  static async open(options: RigOptions): Promise<PoolRig> {
    const rig = new PoolRig(options);
    rig.#url = await rig.api.listen();
    writeFileSync(join(rig.#folder, "token"), token);
    return rig;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const keeper of this.#keepers) await keeper[Symbol.asyncDispose]();
    await this.nodes[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  submit(count: number): void {
    for (let at = 0; at < count; at += 1) this.#waiting.push(performance.now());
    for (const keeper of this.#keepers) keeper.poke();
  }

  /** Another node that keeps the pool. */
  keeper(name: string): Pools {
    const { max, warm = 0 } = this.#options;
    const pools = PoolsConfig.parse([
      {
        kind: "kubernetes",
        name: "linux",
        api: this.#url,
        tokenFile: join(this.#folder, "token"),
        server: "http://node",
        max,
        idle: "2s",
        startWithin: "30s",
        templates: [{ runsOn: ["x"], image: "r:1", warm }],
      },
    ]);
    const keeper = new Pools({
      pools,
      node: name,
      standings: standingsIn(this.#records),
      records: this.#records,
      clock: this.#clock,
      random: new Random(name),
      server: undefined,
      owns: () => true,
      queue: async () => this.#queue(),
      log: () => {},
      register: async (_pool, _template, worker) => {
        this.#made += 1;
        const id = `r-${this.#made}`;
        this.tokens.set(id, worker);
        return { id, token: id };
      },
      unregister: async (_pool, id) => void this.tokens.delete(id),
      lost: async () => this.submit(1),
    });
    this.#keepers.add(keeper);
    return keeper;
  }

  /** As if the node had died: what it began is not ended by it. */
  async crash(keeper: Pools): Promise<void> {
    this.#keepers.delete(keeper);
    await keeper[Symbol.asyncDispose]();
  }

  #queue(): Queue {
    const count = this.#waiting.length;
    const row = { tenant: "t", requires: ["door=ci", "runner=x"], count, oldestForMs: 0, tasks: [] };
    return { waiting: count > 0 ? [row] : [], workers: [...this.#workers.values()] };
  }

  #run(secret: string): RunningPod {
    const { promise, resolve } = Promise.withResolvers<number>();
    const name = this.tokens.get(secret);
    if (name === undefined) return { ended: Promise.resolve(1), kill: () => {} }; // the token is not known
    this.tokens.delete(secret); // used
    const worker = `${name}-0123456789ab`;
    const finish = (code: number): void => {
      clearInterval(asks);
      this.#workers.delete(worker);
      resolve(code);
    };
    this.#workers.set(worker, { name: worker, holds: [] });
    const take = (): void => {
      const sinceMs = this.#waiting.shift();
      if (sinceMs === undefined) return;
      clearInterval(asks);
      this.waitedMs.push(performance.now() - sinceMs);
      this.#workers.set(worker, { name: worker, holds: [{ task: "t", token: 1, tenant: "t" }] });
      setTimeout(() => {
        if (!this.#workers.has(worker)) return;
        this.done += 1;
        finish(0);
      }, this.#options.jobMs ?? 5);
    };
    const asks = setInterval(take, 5);
    return { ended: promise, kill: () => this.#workers.get(worker)?.holds.length === 0 && finish(137) };
  }
}
