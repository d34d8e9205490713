/**
 * A client: submits jobs over the real router, sends the signals they wait for, queries them, cancels, repeats itself,
 * reports lost results, and now and then sends something invalid.
 */
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Command, Submit } from "#kernel/model/command.ts";
import type { Reuse } from "#kernel/model/model.ts";
import type { JobView, Query, TaskView } from "#kernel/read/query.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Router, Settled } from "#shard/router/router.ts";
import { badCommands } from "./bad-commands.ts";
import { badNewerCommands } from "./bad-newer-commands.ts";
import { doubts } from "./client-doubts.ts";
import { comesBack, type JoinPorts } from "./client-joins.ts";
import type { Life } from "#sim/world/machine.ts";
import { greedy, poisoned, poisons, type Poison } from "#sim/faults/poison.ts";
import { queriesOf } from "./queries.ts";
import type { DrawnJob } from "./draw.ts";
import { shapes, type ShapeName } from "./workloads.ts";

export type ClientPorts = {
  readonly life: Life;
  readonly router: Router;
  /** Another router, with its own, often older, beliefs about who owns what. */
  readonly otherRouter: Router;
  /** One that knows nothing yet. */
  readonly freshRouter: () => Router;
  readonly random: Random;
  readonly injected: (kind: string) => void;
  /** No more faults: everything has been healed. */
  readonly healed: () => boolean;
};

export type ClientHabits = {
  readonly name: string;
  readonly shards: number;
  readonly tenants: readonly string[];
  readonly shapes: readonly ShapeName[];
  readonly jobs: number;
  readonly everyMs: number;
  readonly leaseMs: number;
  readonly labels: readonly string[];
  readonly executors: readonly string[];
  /** The probability per job of each thing that clients do to their jobs. */
  readonly clientActions: ReadonlyMap<ClientAction, number>;
};

export const clientActionKinds = [
  "asks",
  "cancels",
  "leaves",
  "repeats",
  "forges",
  "invalidates",
  "reruns",
  "says-nonsense",
  "poisons",
  "drains",
  "watches",
  "joins",
  "doubts",
] as const;
export type ClientAction = (typeof clientActionKinds)[number];

const nonsense = [...badCommands, ...badNewerCommands];

type Submitted = { readonly shard: number; readonly job: number; readonly drawn: DrawnJob };

export class Client {
  readonly #ports: ClientPorts;
  readonly #habits: ClientHabits;
  /** Submissions without an answer yet, and signals not yet acknowledged. */
  open = 0;
  #serial = 0;

  constructor(ports: ClientPorts, habits: ClientHabits) {
    this.#ports = ports;
    this.#habits = habits;
  }

  start(): void {
    void this.#submitLoop();
  }

  get done(): boolean {
    return this.#serial >= this.#habits.jobs && this.open === 0;
  }

  async #submitLoop(): Promise<void> {
    const { life, random, otherRouter } = this.#ports;
    for (let shard = 0; shard < this.#habits.shards; shard += 1)
      void otherRouter.request({ kind: "query", shard, query: { kind: "stats" } }).catch(() => {});
    while (this.#serial < this.#habits.jobs) {
      this.#serial += 1;
      this.open += 1;
      void this.#job(this.#serial).finally(() => (this.open -= 1));
      await life.clock.sleep(random.fraction() * this.#habits.everyMs * 2);
    }
  }

  async #job(serial: number): Promise<void> {
    const { random } = this.#ports;
    const { name, shards, tenants, leaseMs, labels } = this.#habits;
    const shard = random.below(shards);
    const shape = random.pick(this.#habits.shapes);
    const context = { random, tenant: random.pick(tenants), name: `${name}-${serial}`, leaseMs, labels };
    const drawn = shapes[shape](context);
    const keyed = random.chance(0.7) ? { ...drawn.submit, requestKey: `key-${name}-${serial}` } : drawn.submit;
    const [job] = await Promise.all([keyed, ...(drawn.also ?? [])].map((submit) => this.#submit(shard, submit)));
    if (job === undefined) return;
    const submitted = { shard, job, drawn: { ...drawn, submit: keyed } };
    if (drawn.child) await this.#child({ ...drawn.child, requestKey: `child-${name}-${serial}` }, shard, job);
    for (const whim of clientActionKinds) if (this.#feels(whim)) void this.#follow(whim, submitted);
    for (const { stage, name: signal } of drawn.signals) await this.#signal(submitted, stage, signal);
  }

  /** Now and then it is too late: the one to be told has been cancelled, or does not exist. */
  async #child(submit: Submit, shard: number, job: number): Promise<void> {
    const { random } = this.#ports;
    const unknown = random.chance(0.1) ? [{ shard, job: job + 1_000_000, stage: 0, name: "child" }] : [];
    const notify = [{ shard, job, stage: 0, name: "child" }, ...unknown];
    await this.#submit(random.below(this.#habits.shards), { ...submit, notify });
  }

  #feels(whim: ClientAction): boolean {
    return this.#ports.random.chance(this.#habits.clientActions.get(whim) ?? 0);
  }

  /** Until it is accepted, or refused for good. With a request key it may be repeated safely; without one, not. */
  async #submit(shard: number, submit: Submit): Promise<number | undefined> {
    for (let tries = 0; tries < 200; tries += 1) {
      const got = await this.ask(shard, submit, 15_000);
      if (got?.kind === "reply") return (got.reply as Replies["submit"]).job;
      if (got?.kind === "rejected" && !("retryAfterMs" in got.rejection)) return undefined;
      if (got === undefined && submit.requestKey === undefined) return undefined;
      await this.#ports.life.clock.sleep(500 + this.#ports.random.below(1_000));
    }
    return undefined;
  }

  async #signal({ shard, job }: Submitted, stage: number, name: string): Promise<void> {
    const { life, random } = this.#ports;
    await life.clock.sleep(random.below(4_000));
    const by = random.chance(0.3) ? { by: this.#habits.name } : {};
    const signal = { id: `${name}-${this.#habits.name}-${job}`, name, payload: "", ...by };
    // Some clients are impatient and send it again.
    if (random.chance(0.2)) void this.ask(shard, { kind: "signal", job, stage, signal }, 5_000);
    for (let tries = 0; tries < 200; tries += 1) {
      const got = await this.ask(shard, { kind: "signal", job, stage, signal }, 15_000);
      if (got !== undefined) break;
      await life.clock.sleep(1_000);
    }
    // Signals that no planner waits for are recorded too, up to a limit.
    for (let i = 0; i < 4 && random.chance(0.3); i += 1)
      await this.ask(shard, { kind: "signal", job, stage, signal: { ...signal, id: `noise-${i}`, name: "noise" } });
  }

  async #follow(whim: ClientAction, submitted: Submitted): Promise<void> {
    const { life, random, healed, injected } = this.#ports;
    // Many jobs are over in a second.
    await life.clock.sleep(random.below(random.pick([1_000, 8_000])));
    if (healed()) return;
    injected(`client-${whim}`);
    const { shard, job, drawn } = submitted;
    const { submit } = drawn;
    switch (whim) {
      case "asks":
        return this.#asks(submitted);
      case "cancels":
        return this.#cancels(submitted);
      case "leaves":
        return this.#leaves(submitted);
      case "repeats":
        return this.#repeats(shard, submit);
      case "forges":
        return void (await this.ask(shard, { ...submit, payloadHash: "another", name: "forged" }));
      case "invalidates":
        return this.#invalidates(submitted);
      case "reruns":
        return this.#reruns(submitted);
      case "says-nonsense":
        return this.#nonsense(submitted);
      case "poisons":
        return this.#poisons(submitted);
      case "drains":
        return this.#drains(shard);
      case "watches":
        return this.#watches(submitted);
      case "joins":
        return comesBack({ name: `${this.#habits.name}-${job}`, shard, job, submit }, this.#waysBack(shard));
      case "doubts":
        return this.#doubts(submitted);
    }
  }

  async #asks({ shard, job }: Submitted): Promise<void> {
    for (let i = 0; i < 5 && !this.#ports.healed(); i += 1) {
      await this.#query(shard, this.#ports.random.pick(queriesOf(job)));
      await this.#ports.life.clock.sleep(this.#ports.random.below(3_000));
    }
  }

  /** The whole job, or one stage of it; some lose patience with what cleans up. */
  async #cancels({ shard, job, drawn }: Submitted): Promise<void> {
    const { random, life } = this.#ports;
    const cancel = { kind: "cancel" as const, job, reason: "changed its mind" };
    if (random.chance(0.2))
      return void (await this.ask(shard, { ...cancel, stage: random.below(drawn.submit.stages.length) }));
    const graceMs = random.chance(0.3) ? { graceMs: random.below(5_000) } : {};
    await this.ask(shard, { ...cancel, ...graceMs, ...(random.chance(0.2) ? { hard: true } : {}) });
    if (!random.chance(0.3)) return;
    await life.clock.sleep(random.below(4_000));
    await this.ask(shard, { ...cancel, ...(random.chance(0.5) ? { hard: true } : {}) });
  }

  async #repeats(shard: number, submit: Submit): Promise<void> {
    const { life, random, healed } = this.#ports;
    await Promise.all([this.ask(shard, submit), this.ask(shard, submit)]);
    for (let i = random.below(6); i > 0 && !healed(); i -= 1) {
      await life.clock.sleep(random.below(1_500));
      await this.ask(shard, submit);
    }
  }

  /** Once, and sometimes again; and other subscribers may leave as well. */
  async #leaves({ shard, job, drawn: { submit, also = [] } }: Submitted): Promise<void> {
    const { random } = this.#ports;
    const all = [submit, ...also].map(({ subscriber = "nobody" }) => subscriber);
    for (const subscriber of all.filter((_, i) => i === 0 || random.chance(0.7))) {
      await this.ask(shard, { kind: "leave", job, subscriber });
      if (random.chance(0.3)) await this.ask(shard, { kind: "leave", job, subscriber });
    }
  }

  #waysBack(shard: number): JoinPorts {
    const { life, router, random } = this.#ports;
    return { life, router, random, ask: (command) => this.ask(shard, command) };
  }

  #doubts({ shard, job, drawn: { submit } }: Submitted): Promise<void> {
    const { life, random, freshRouter, otherRouter } = this.#ports;
    const { leaseMs, labels } = this.#habits;
    const small = (name: string): Submit =>
      shapes.single({ random, tenant: submit.tenant, name, leaseMs, labels }).submit;
    return doubts(`${this.#habits.name}-${job}`, shard, { life, random, freshRouter, otherRouter, small });
  }

  async #watches({ shard, job }: Submitted): Promise<void> {
    const abort = new AbortController();
    const cancel = this.#ports.life.clock.after(20_000, () => abort.abort(new Error("seen enough")));
    try {
      for await (const { kind } of this.#ports.router.watch({ shard, job }, abort.signal))
        if (kind === "end" || kind === "rejected") break;
    } catch (error) {
      if (!isFault(error) && !abort.signal.aborted) throw error;
    }
    cancel();
  }

  /** The bytes of a result are lost: reports that, once or twice, sometimes for the wrong generation. */
  async #invalidates(submitted: Submitted): Promise<void> {
    const { random } = this.#ports;
    const { shard, job, drawn } = submitted;
    if (drawn.submit.stages.some(({ tasks }) => tasks?.array)) return this.#invalidatesArray(shard, job);
    let done = await this.#doneIn(shard, job);
    for (let tries = random.below(4); done.length === 0 && tries > 0; tries -= 1) {
      await this.#ports.life.clock.sleep(random.below(3_000));
      done = await this.#doneIn(shard, job);
    }
    if (done.length === 0) return;
    const { task, generation } = random.pick(done);
    const invalidate = { kind: "invalidate" as const, task, generation, reason: "lost" };
    await this.ask(shard, invalidate);
    // And again when it has been made again.
    if (random.chance(0.3)) {
      await this.#ports.life.clock.sleep(2_000);
      await this.ask(shard, { ...invalidate, generation: generation + 1 });
    }
    if (random.chance(0.3)) await this.ask(shard, invalidate);
    if (random.chance(0.2)) await this.ask(shard, { ...invalidate, generation: generation + random.between(-2, 3) });
  }

  /**
   * A view lists no tasks of an array that have ended, so their numbers are guessed, again and again: also while the
   * stage's manifest is being written, and when it has been.
   */
  async #invalidatesArray(shard: number, job: number): Promise<void> {
    const { random, life, healed } = this.#ports;
    for (let i = 0; i < 25 && !healed(); i += 1) {
      const task = random.between(1, 40);
      const generation = random.chance(0.8) ? 1 : random.between(1, 3);
      await this.ask(shard, { kind: "invalidate", task, generation, reason: `lost, says who has ${job}` });
      await life.clock.sleep(random.below(300));
    }
  }

  /** Tasks with a result: first those whose consumers are running, where it matters most. */
  async #doneIn(shard: number, job: number): Promise<readonly TaskView[]> {
    const view = await this.#view(shard, job);
    if (!view) return [];
    const done = view.tasks.filter(({ phase }) => phase === "SUCCEEDED");
    const busy = view.stages.filter(({ phase }) => phase === "RUNNING" || phase === "READY");
    const needed = new Set(busy.flatMap(({ needs }) => needs));
    const inUse = done.filter(({ stage }) => needed.has(stage));
    return inUse.length > 0 && this.#ports.random.chance(0.7) ? inUse : done;
  }

  /** Submits the job again, reusing what is already done. */
  async #reruns({ shard, job, drawn }: Submitted): Promise<void> {
    const view = await this.#view(shard, job);
    if (!view) return;
    const stages = new Map(view.stages.map(({ stage, name }) => [stage, name]));
    const { requestKey: _used, ...submit } = drawn.submit;
    const specs = new Map(
      submit.stages.flatMap(({ name, tasks }) => (tasks?.tasks ?? []).map(({ key, spec }) => [`${name}/${key}`, spec])),
    );
    const reuse = view.tasks.flatMap(({ stage, key, result }: TaskView): Reuse[] => {
      const name = stages.get(stage) ?? "";
      const spec = specs.get(`${name}/${key}`);
      return result && spec !== undefined ? [{ stage: name, key, spec, result }] : [];
    });
    const again = await this.ask(shard, { ...submit, name: `${submit.name}-again`, reuse });
    if (again?.kind !== "reply") return;
    const { job: rerun } = again.reply as Replies["submit"];
    for (const { stage, name } of drawn.signals) await this.#signal({ shard, job: rerun, drawn }, stage, name);
  }

  async #nonsense({ shard, job, drawn }: Submitted): Promise<void> {
    const { random } = this.#ports;
    for (let i = 0; i < 12; i += 1)
      await this.ask(shard, random.pick(nonsense)({ random, job, submit: drawn.submit }), 3_000);
  }

  async #poisons({ shard, job, drawn }: Submitted): Promise<void> {
    const { random } = this.#ports;
    const { path } = random.pick(poisons);
    // A deeper property is copied into events as it is, and would poison the steps after deciding as well.
    const poison: Poison = { path, reads: path.length === 1 ? random.below(12) : 0, bare: random.chance(0.3) };
    const submit = { ...drawn.submit, name: "poisoned", requestKey: `poison-${this.#habits.name}-${job}` };
    await this.ask(shard, poisoned(submit, poison), 3_000);
    const signal = { id: "poison", name: "poison", payload: "" };
    await this.ask(
      shard,
      poisoned({ kind: "signal", job, stage: 0, signal }, { path: ["signal", "name"], reads: 0 }),
      3_000,
    );
    const offers = [...this.#habits.labels, "os=plan9", "plan=sim-1"];
    const reserve: Command = { ...greedy, offers };
    await this.ask(shard, poisoned(reserve, { path: ["offers", "0"], reads: 0 }), 3_000);
    // As many failures as a shard remembers, and more.
    for (let i = random.chance(0.1) ? 120 : 1; i > 0; i -= 1)
      await this.ask(shard, poisoned(reserve, { path: ["prefer", "0"], reads: 0 }), 3_000);
  }

  async #drains(shard: number): Promise<void> {
    const { life, random } = this.#ports;
    const executor = random.chance(0.2) ? "ghost" : random.pick(this.#habits.executors);
    await this.ask(shard, { kind: "drain", executor, reason: "maintenance" });
    await life.clock.sleep(random.below(10_000));
    this.open += 1;
    for (let tries = 0; tries < 200; tries += 1) {
      if ((await this.ask(shard, { kind: "resume", executor }, 15_000)) !== undefined) break;
      await life.clock.sleep(1_000);
    }
    this.open -= 1;
  }

  #way(): Router {
    return this.#ports.random.chance(0.3) ? this.#ports.otherRouter : this.#ports.router;
  }

  async #view(shard: number, job: number): Promise<JobView | undefined> {
    const got = await this.#query(shard, { kind: "job", job, tasksMax: 50 });
    return got?.kind === "answer" ? (got.answer as JobView) : undefined;
  }

  async #query(shard: number, query: Query): Promise<Settled | undefined> {
    try {
      return await this.#way().request({ kind: "query", shard, query }, { deadlineMs: 10_000 });
    } catch (error) {
      if (isFault(error)) return undefined;
      throw error;
    }
  }

  async ask(shard: number, command: Command, deadlineMs = 10_000): Promise<Settled | undefined> {
    try {
      return await this.#way().request({ kind: "command", shard, command }, { deadlineMs });
    } catch (error) {
      if (isFault(error)) return undefined;
      throw error;
    }
  }
}
