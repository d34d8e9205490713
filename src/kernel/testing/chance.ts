/**
 * Test support: drives a shard at random. Commands are drawn from a small set, most of them sensible, some stale,
 * repeated or out of place; time passes in small and large steps.
 */
import { Random } from "#base/random.ts";
import type { Command, CommandKind, CommandOf } from "#kernel/model/command.ts";
import type { FailReason, Plan, StageSpec } from "#kernel/model/model.ts";
import type { State } from "#kernel/model/state.ts";
import { digestOf, planOf } from "./commands.ts";
import { lockOf, stagesOf, taskSetOf } from "./parse.ts";

const shapes: readonly (readonly string[])[] = [
  ["a[x]"],
  ["a[x,y,z];par=2;retry=any;backoff=200ms"],
  ["a[x,y,z,w];speculate;lease=2s", "b[v]<a"],
  ["a[x,y];failfast", "b[z]<a;end", "c[w]<b"],
  ["a[?]", "b[?]<a;deadline=5s"],
  ["a[x]", "b[?]<a;end", "c[y]<b;end", "d[z]<a"],
  ["a[x];stop=1m", "b[?];end", "c[w]<a,b;end"],
  ["a[x,y]", "b[?]<a;lock=n:1:2", "c[z]<a;lock=n:1:2:cancel"],
  ["a[x];lock=n:1:1:cancel;attempt=1s;tries=2", "b[y];mayfail;queue=3s", "c[z]<b"],
  ["a[]", "b[x,y]<a;on=gpu;tries=1;par=1"],
  ["a[x,y,z];own=t:1:9;attempt=1s;tries=2", "b[?]<a"],
  ["a[x,y];own=t:1:1:cancel", "b[w]<a;own=u:2:1;end"],
  ["a[#9];retry=any;backoff=200ms", "b[#3+7]<a", "c[?]<b"],
  ["a[#7];speculate;lease=2s;par=3", "b[x]<a;manifest"],
  ["a[#20];failfast;tries=1;retry=any", "b[#4]<a;end"],
  ["a[#6];queue=2s;mayfail", "b[#0]<a"],
];
const severalSets = [
  "[x]&[y];on=gpu",
  "[x,y]&says;lock=n:1:2",
  "[x,y]&[z]&says;lock=m:1:1:cancel;par=1",
  "[x]&says;lock=l:1:1;failfast",
  "[x,y];own=n:1:2&[z];own=l:1:1:cancel",
  "[x,y,z];own=t:1:1;par=2",
  "[x,y]&[#4]&[#3+50];on=gpu",
  "[#6]&says;lock=n:1:2;par=2",
  "[x,y]&[]&says;mayfail;failfast=no",
];
const reasons: readonly FailReason[] = ["executor-lost", "preempted", "out-of-memory", "user-failure", "cancelled"];
const executors = ["ada", "bea", "cyd"];
const tenants = ["acme", "best"];

/** The kinds to draw from: a kind that is listed more often is drawn more often. */
const words: readonly CommandKind[] = [
  ...Array.from<CommandKind>({ length: 4 }).fill("submit"),
  ...Array.from<CommandKind>({ length: 8 }).fill("reserve"),
  ...Array.from<CommandKind>({ length: 8 }).fill("commit"),
  ...Array.from<CommandKind>({ length: 5 }).fill("record-plan"),
  ...Array.from<CommandKind>({ length: 4 }).fill("fail"),
  ...Array.from<CommandKind>({ length: 3 }).fill("renew"),
  ...Array.from<CommandKind>({ length: 3 }).fill("invalidate"),
  ...Array.from<CommandKind>({ length: 2 }).fill("signal"),
  "start",
  "start",
  "release",
  "report",
  "checkpoint",
  "checkpoint",
  "cancel",
  "leave",
  "forget",
  "drain",
  "resume",
  "set-tenant",
  "lend-quota",
  "take-quota",
  "take-over",
  "published",
  "published",
  "published",
  "record-manifest",
  "record-manifest",
  "record-manifest",
  "record-manifest",
];

export class Chance {
  readonly #state: State;
  readonly random: Random;
  readonly #said: Command[] = [];
  #serial = 0;

  constructor(state: State, seed: number) {
    this.#state = state;
    this.random = new Random(seed);
  }

  /** How much time passes before the next command. */
  passMs(): number {
    const { random } = this;
    if (random.chance(0.6)) return 0;
    if (random.chance(0.05)) return random.between(2_000, 20_000);
    return random.between(1, 900);
  }

  next(): Command {
    const { random } = this;
    if (random.chance(0.3)) return { kind: "tick" };
    const before = this.#said[random.below(20)];
    if (before && random.chance(0.15)) return before;
    const command = this.#make(random.pick(words));
    this.#said.unshift(command);
    this.#said.length = Math.min(this.#said.length, 20);
    return command;
  }

  #make(kind: CommandKind): Command {
    const { random } = this;
    const job = 1 + random.below(this.#state.nextJob);
    const executor = random.pick(executors);
    const claim = this.#claim();
    switch (kind) {
      case "submit":
        return this.#submit();
      case "reserve": {
        const offers = random.chance(0.7) ? ["gpu"] : [];
        const nonce = `n${this.#serial++}`;
        return { kind, executor, offers, prefer: [], count: random.between(1, 3), start: startOf(random), nonce };
      }
      case "start":
        return { kind, ...claim };
      case "release":
        return random.chance(0.5) ? { kind, ...claim } : { kind, ...claim, ...this.#checkpoint() };
      case "checkpoint":
        return { kind, ...claim, ...this.#checkpoint() };
      case "renew":
        return {
          kind,
          executor,
          claims: random.chance(0.5) ? [{ task: claim.task, token: claim.token, heard: random.below(4) }] : [],
        };
      case "report":
        return { kind, ...claim, steps: [{ step: random.below(3), name: "s", status: "progress" }] };
      case "commit":
        return this.#commit(claim);
      case "record-plan":
        return { kind, ...this.#planning(claim), plan: this.#plan() };
      case "fail":
        return { kind, ...claim, reason: random.pick(reasons), message: "m", ...(random.chance(0.4) && this.#left()) };
      case "invalidate": {
        const task = this.#state.findTask(1 + random.below(this.#state.nextTask));
        return { kind, task: task?.no ?? 1, generation: task?.generation ?? 1, reason: "lost" };
      }
      case "published": {
        const waiting = [...this.#state.outbox.values()];
        const { task, generation } = waiting.length > 0 ? random.pick(waiting) : { task: 1, generation: 1 };
        return { kind, task, generation: random.chance(0.9) ? generation : generation + 1 };
      }
      case "record-manifest": {
        const [no = 1] = this.#state.manifests.keys();
        const digests = random.chance(0.9) ? [digestOf("m")] : [];
        return {
          kind,
          no: random.chance(0.9) ? no : no + 1,
          digest: digestOf("m"),
          evidence: { digests, pinnedForMs: 1 },
        };
      }
      default:
        return this.#admin(kind, job, executor);
    }
  }

  #admin(kind: CommandKind, job: number, executor: string): Command {
    const { random } = this;
    const tenant = random.pick(tenants);
    switch (kind) {
      case "signal": {
        const signal = { id: `i${random.below(20)}`, name: random.pick(["go", "no"]), payload: "p" };
        return { kind, job, stage: random.below(3), signal: random.chance(0.5) ? signal : { ...signal, by: "anna" } };
      }
      case "cancel":
        return {
          kind,
          job,
          reason: "r",
          ...(random.chance(0.3) ? { hard: random.chance(0.7) } : {}),
          ...(random.chance(0.3) ? { stage: random.below(4) } : {}),
          ...(random.chance(0.5) ? { graceMs: random.below(3) * 1_000 } : {}),
        };
      case "leave":
        return { kind, job, subscriber: random.pick(["ann", "bob"]) };
      case "forget":
        return { kind, jobs: [...this.#state.jobs.keys()].slice(0, random.between(1, 20)) };
      case "drain":
        return { kind, executor, reason: "r" };
      case "set-tenant": {
        const [weight, runningMax, queuedMax] = [random.between(1, 3), random.pick([0, 0, 2, 4]), random.pick([0, 50])];
        return { kind, tenant, weight, runningMax, queuedMax, home: random.below(2) };
      }
      case "lend-quota": {
        const [want, forMs] = [random.below(3), random.between(1, 5_000)];
        const holds = want === 2 ? undefined : (this.#state.tenants.get(tenant)?.sliceNo ?? 0);
        return { kind, tenant, borrower: 1, want, running: 0, forMs, holds };
      }
      case "take-quota":
        return { kind, tenant, slots: random.below(4), forMs: random.between(1, 5_000) };
      case "take-over":
        return { kind, epoch: this.#state.epoch + random.below(2), node: "n" };
      default:
        return { kind: "resume", executor };
    }
  }

  #submit(): CommandOf<"submit"> {
    const submit = this.#order();
    return submit.mergeKey !== undefined && this.random.chance(0.3) ? joiningOnly(submit) : submit;
  }

  #order(): CommandOf<"submit"> {
    const { random } = this;
    const maybe = <T>(chance: number, value: T): T | undefined => (random.chance(chance) ? value : undefined);
    const key = maybe(0.3, `k${random.below(10)}`);
    const merge = maybe(0.3, `m${random.below(3)}`);
    const by = maybe(0.5, random.pick(["ann", "bob"]));
    const lock = maybe(0.25, lockOf(random.pick(["l:1:1", "l:1:1:cancel", "l:2:3"])));
    const stages: StageSpec[] = stagesOf(random.pick(shapes));
    const reuse = [{ stage: "a", key: "x", spec: "do-x", result: { payload: "old", digests: [digestOf("d")] } }];
    return {
      kind: "submit",
      tenant: random.pick(tenants),
      door: "front",
      name: "j",
      payloadHash: random.pick(["h", "h", "h", "g"]),
      priority: random.between(-1, 1),
      spec: "s",
      stages,
      deadlineMs: random.pick([5_000, 60_000, 600_000]),
      ...(random.chance(0.2) ? { cancelGraceMs: random.below(3) * 2_000 } : {}),
      ...(key === undefined ? {} : { requestKey: key }),
      ...(merge === undefined ? {} : { mergeKey: merge }),
      ...(by === undefined ? {} : { subscriber: by, leaveGraceMs: random.below(3) * 500, trace: `00-${by}` }),
      ...(lock === undefined ? {} : { lock }),
      ...(random.chance(0.2) ? { reuse, reuseEvidence: { digests: [digestOf("d")], pinnedForMs: 1 } } : {}),
    };
  }

  #commit(claim: Claimed): Command {
    const digests = this.random.chance(0.5) ? [digestOf("d")] : [];
    const pinned = this.random.chance(0.9) ? digests : [];
    const payload = this.random.pick(["p", "p", "q"]);
    const result = this.random.chance(0.3) ? { payload, digests, publish: "known" } : { payload, digests };
    return { kind: "commit", ...claim, result, evidence: { digests: pinned, pinnedForMs: 1 } };
  }

  #checkpoint() {
    const digests = this.random.chance(0.5) ? [digestOf("d")] : [];
    const pinned = this.random.chance(0.9) ? digests : [];
    const payload = this.random.pick(["half", "more", "nearly all"]);
    return { checkpoint: { payload, digests }, evidence: { digests: pinned, pinnedForMs: 1 } };
  }

  #left() {
    const { checkpoint: result, evidence } = this.#checkpoint();
    return { result, evidence };
  }

  #plan(): Plan {
    const { random } = this;
    if (random.chance(0.3)) return planOf(random.pick(severalSets));
    if (random.chance(0.6))
      return { kind: "tasks", set: taskSetOf(random.pick(["[x,y]", "[x];speculate", "[]", "[#5]", "[#8];par=2"])) };
    if (random.chance(0.6)) return { kind: "wait", forMs: random.between(1, 3_000), signals: ["go"] };
    return { kind: random.pick(["skip", "fail"]), reason: "r" };
  }

  /** Mostly a live claim, sometimes a void one, now and then none at all. */
  #claim(): Claimed {
    const { random } = this;
    const executor = this.#state.executors.get(random.pick(executors));
    const claims = [...(executor?.claims.values() ?? [])];
    if (!executor || claims.length === 0 || random.chance(0.05))
      return {
        executor: random.pick(executors),
        task: 1 + random.below(this.#state.nextTask),
        token: random.below(50),
      };
    const { task, token } = random.pick(claims);
    return { executor: executor.id, task: task.no, token };
  }

  #planning(otherwise: Claimed): Claimed {
    for (const { id, claims } of this.#state.executors.values())
      for (const { task, token } of claims.values())
        if (task.index === -1 && this.random.chance(0.7)) return { executor: id, task: task.no, token };
    return otherwise;
  }
}

/** The same submission, as one that only joins. */
export function joiningOnly(submit: CommandOf<"submit">): CommandOf<"submit"> {
  const { lock: _lock, reuse: _reuse, reuseEvidence: _evidence, ...rest } = submit;
  return { ...rest, joinOnly: true, stages: [], deadlineMs: 0 };
}

type Claimed = { readonly executor: string; readonly task: number; readonly token: number };

const startOf = (random: Random): boolean | "pure" => (random.chance(0.3) ? "pure" : random.chance(0.5));
