/**
 * Test support: the kernel driven by text. A transcript is lines of `command -> what comes of it`:
 *
 *     submit j : build[x,y] test[z]<build -> job 1 new; x y READY, z HELD, build RUNNING, test BLOCKED, j RUNNING
 *     reserve ada n=1                     -> x#1; x CLAIMED
 *     +10s                                -> x RETRY_PENDING
 *     commit ada x                        -> REFUSED token-stale task=1 offered=1 current=1
 *
 * `specify` runs the commands and compares. An answer comes first, then every phase that changed. Time stands still
 * but for `+…` (the shard ticks all the way) and `leap …` (it slept). After each line the state is checked
 * (testing/check.ts), and at the end the log is replayed into a fresh state that must come out the same.
 */
import { assert, must } from "#base/assert.ts";
import { answer } from "#kernel/read/answer.ts";
import { apply } from "#kernel/apply/apply.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Task } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Checkpoint, Evidence, FailReason } from "#kernel/model/model.ts";
import type { Query, WhyReason } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { type Outcome, step } from "#kernel/step.ts";
import { checkState } from "./check.ts";
import { adminOf, digestOf, joinOf, planOf, submitOf } from "./commands.ts";
import { factsOf } from "./facts.ts";
import { durationOf, listOf, type Options, optionsOf, wholeOf, wordsOf } from "./parse.ts";

/** Plays a transcript: the outcome of each line must be the text after its arrow. */
export function specify(text: string, limits: Partial<Limits> = {}): Transcript {
  const transcript = new Transcript({ limits });
  transcript.specify(text);
  transcript.checkReplay();
  return transcript;
}

export class Transcript {
  readonly state: State;
  readonly events: Event[] = [];
  nowMs = 1_000_000;
  readonly #phases = new Map<string, string>();
  readonly #jobs = new Map<string, number>();
  readonly #tokens = new Map<string, number>();
  #last: Command = { kind: "tick" };
  #nonce = 0;

  constructor(given: { readonly limits?: Partial<Limits>; readonly shard?: number } = {}) {
    this.state = createState(given.shard ?? 0, { ...defaultLimits, ...given.limits });
  }

  specify(text: string): void {
    // A long outcome may be on a line of its own.
    const lines = text.replaceAll(/\n\s*->/g, " ->").split("\n");
    const was: string[] = [];
    let isAsWanted = true;
    for (const line of lines.map((each) => each.trim())) {
      if (line === "" || line.startsWith("#")) continue;
      const [command = "", outcome = ""] = line.split(/\s+-> ?/);
      const real = this.say(command);
      if (real.trim() === outcome.trim()) was.push(`      ${line}`);
      else {
        was.push(`wanted ${line}`, `   was ${command.trim()} -> ${real}`);
        isAsWanted = false;
      }
    }
    assert(isAsWanted, `the transcript went otherwise:\n${was.join("\n")}`);
  }

  /** Runs one line and returns its outcome as text. */
  say(line: string): string {
    const words = wordsOf(line);
    const verb = must(words[0], "command");
    if (verb.startsWith("+")) return this.#pass(durationOf(verb.slice(1)));
    if (verb === "why") return this.#why(must(words[1], "job"));
    if (verb === "leap") this.nowMs += durationOf(words[1] ?? "");
    return this.#answered(this.do(this.#command(verb, words.slice(1))));
  }

  /** Runs one command object and checks the state afterwards. */
  do(command: Command): Outcome {
    this.#last = command;
    const outcome = step(this.state, command, this.nowMs);
    this.events.push(...outcome.events);
    if (outcome.ok && "grants" in outcome.reply)
      for (const { task, token } of outcome.reply.grants)
        this.#tokens.set(`${(command as { executor: string }).executor} ${task}`, token);
    if (outcome.ok && command.kind === "submit" && "created" in outcome.reply && outcome.reply.created)
      this.#jobs.set(command.name, outcome.reply.job);
    // Hours are ticked through in seconds: where nothing happened there is nothing new to check.
    const wrong = command.kind === "tick" && outcome.events.length === 0 ? [] : checkState(this.state);
    assert(wrong.length === 0, `after ${JSON.stringify(command)}:\n  ${wrong.join("\n  ")}`);
    return outcome;
  }

  ask(query: Query): unknown {
    const answered = answer(this.state, query, this.nowMs);
    return answered.ok ? answered.answer : answered.rejection;
  }

  /** Replaying the log alone must lead to the same state. */
  checkReplay(): void {
    const fresh = createState(this.state.shard, this.state.limits);
    for (const event of structuredClone(this.events)) apply(fresh, event);
    const live = new Set(factsOf(this.state));
    const again = new Set(factsOf(fresh));
    const differences = [
      ...[...live.difference(again)].map((fact) => `live:     ${fact}`),
      ...[...again.difference(live)].map((fact) => `replayed: ${fact}`),
    ];
    assert(differences.length === 0, `the log leads elsewhere:\n${differences.join("\n")}`);
  }

  /** The newest task with that key; `<stage>/plan` is a planning task. */
  task(name: string): Task {
    const found = [...this.state.tasks.values()].filter((task) => labelOf(task) === name);
    return must(found.at(-1), `task ${name}`);
  }

  job(name: string): number {
    return this.#jobs.get(name) ?? Number(name);
  }

  #pass(ms: number): string {
    const endAtMs = this.nowMs + ms;
    for (;;) {
      const { reply } = this.do({ kind: "tick" }) as unknown as { reply: { more: boolean; nextDueInMs: number } };
      if (reply.more) continue;
      if (this.nowMs === endAtMs) break;
      const stepMs = Math.max(1, Math.min(reply.nextDueInMs, this.state.limits.sleepMs));
      this.nowMs = Math.min(endAtMs, this.nowMs + stepMs);
    }
    return this.#changes();
  }

  #why(name: string): string {
    const { why } = this.ask({ kind: "why", job: this.job(name) }) as {
      why: { key: string; because: WhyReason }[];
    };
    return why.map(({ key, because }) => `${key} ${factsText(because)}`).join("; ");
  }

  #answered(outcome: Outcome): string {
    const text = outcome.ok ? this.#reply(outcome.reply) : `REFUSED ${factsText(outcome.rejection)}`;
    return [text, this.#changes()].filter(Boolean).join("; ");
  }

  #reply(reply: object): string {
    if ("grants" in reply) {
      const grants = reply.grants as readonly { task: number; token: number }[];
      return grants.length === 0 ? "nothing" : grants.map((grant) => this.#claimText(grant)).join(" ");
    }
    if ("held" in reply) {
      const { held, lost } = reply as Extract<Outcome, { ok: true }>["reply"] & { held: never[]; lost: never[] };
      const text = (claim: { task: number; token: number; cancelling?: boolean }): string =>
        `${this.#claimText(claim)}${claim.cancelling ? "!" : ""}`;
      return `held ${held.map(text).join(" ") || "-"} lost ${lost.map(text).join(" ") || "-"}`;
    }
    if ("nextDueInMs" in reply) return "";
    if ("created" in reply) {
      const { job, created, merged, number } = reply as Replies["submit"];
      return `job ${job} ${created ? "new" : merged ? "joined" : "known"}${number === undefined ? "" : ` no=${number}`}`;
    }
    return factsText(reply) || "ok";
  }

  #claimText({ task, token }: { readonly task: number; readonly token: number }): string {
    const known = this.state.tasks.get(task);
    return `${known ? labelOf(known) : task}#${token}`;
  }

  #changes(): string {
    const now = new Map<string, string>();
    for (const job of this.state.jobs.values()) {
      for (const stage of job.stages)
        for (const task of stage.planning ? [stage.planning, ...stage.tasks] : stage.tasks)
          now.set(`t${task.no} ${labelOf(task)}`, task.phase === "READY" && !task.list ? "HELD" : task.phase);
      for (const stage of job.stages) now.set(`s${job.no} ${stage.shape.name}`, stage.phase);
      now.set(`j${job.no} ${nameOf(this.#jobs, job.no)}`, job.phase);
    }
    const groups: { names: string[]; phase: string }[] = [];
    for (const [key, phase] of now) {
      if (this.#phases.get(key) === phase) continue;
      const name = key.slice(key.indexOf(" ") + 1);
      const group = groups.at(-1);
      if (group?.phase === phase) group.names.push(name);
      else groups.push({ names: [name], phase });
    }
    this.#phases.clear();
    for (const [key, phase] of now) this.#phases.set(key, phase);
    return groups.map(({ names, phase }) => `${names.length > 8 ? names.length : names.join(" ")} ${phase}`).join(", ");
  }

  #claim(words: readonly string[]): { executor: string; task: number; token: number } {
    const [executor = "", name = "", ...rest] = words;
    const task = /^#\d+$/.test(name) ? Number(name.slice(1)) : this.task(name).no;
    const options = optionsOf(rest);
    const token = options.has("token") ? wholeOf(options, "token", 0) : (this.#tokens.get(`${executor} ${task}`) ?? 0);
    return { executor, task, token };
  }

  #command(verb: string, words: readonly string[]): Command {
    const options = optionsOf(words);
    const [first = "", second = ""] = words;
    switch (verb) {
      case "submit":
        return submitOf(words);
      case "join":
        return joinOf(words);
      case "again":
        return this.#last;
      case "reserve":
        return {
          kind: "reserve",
          executor: first,
          offers: listOf(options.get("offers")).toSorted(),
          prefer: listOf(options.get("prefer")),
          count: wholeOf(options, "n", 1),
          start: options.has("start-pure") ? "pure" : options.has("start"),
          nonce: options.get("nonce") ?? `n${++this.#nonce}`,
          ...(options.has("tenant") ? { tenant: options.get("tenant") ?? "" } : {}),
        };
      case "start":
        return { kind: verb, ...this.#claim(words) };
      case "release":
        return { kind: verb, ...this.#claim(words), ...(options.has("at") ? checkpointOf(options, "at") : {}) };
      case "checkpoint":
        return { kind: verb, ...this.#claim(words), ...checkpointOf(options, "at") };
      case "renew": {
        const executor = this.state.executors.get(first);
        const claims = [...(executor?.claims.values() ?? [])].map(({ task, token }) => ({ task: task.no, token }));
        return { kind: "renew", executor: first, claims: options.has("empty") ? [] : claims };
      }
      case "report": {
        const steps = words.slice(2).map((word, i) => ({ step: i + 1, name: word, status: "succeeded" as const }));
        return { kind: "report", ...this.#claim(words.slice(0, 2)), steps };
      }
      case "commit":
      case "fail":
      case "plan":
        return this.#finish(verb, words, options);
      case "signal": {
        const signal = { id: options.get("id") ?? second, name: words[2] ?? "", payload: options.get("payload") ?? "" };
        const by = options.get("by");
        return {
          kind: "signal",
          job: this.job(first),
          stage: this.#stage(first, second),
          signal: by === undefined ? signal : { ...signal, by },
          ...tenantIn(options),
        };
      }
      case "leave":
        return { kind: "leave", job: this.job(first), subscriber: second };
      case "cancel":
        return {
          kind: "cancel",
          job: this.job(first),
          reason: options.get("reason") ?? "told to",
          ...(options.has("hard") ? { hard: true } : {}),
          ...(options.has("stage") ? { stage: this.#stage(first, options.get("stage") ?? "") } : {}),
          ...(options.has("grace") ? { graceMs: durationOf(options.get("grace") ?? "") } : {}),
          ...tenantIn(options),
        };
      case "invalidate":
        return {
          kind: "invalidate",
          task: this.task(first).no,
          generation: wholeOf(options, "generation", this.task(first).generation),
          reason: "bytes lost",
        };
      case "published": {
        const task = /^#\d+$/.test(first) ? Number(first.slice(1)) : this.task(first).no;
        const generation = wholeOf(options, "generation", this.state.tasks.get(task)?.generation ?? 1);
        return { kind: "published", task, generation };
      }
      default:
        return adminOf(verb, words, (name) => this.job(name));
    }
  }

  #finish(verb: "commit" | "fail" | "plan", words: readonly string[], options: Options): Command {
    const claim = this.#claim(words);
    if (verb === "fail") {
      const reason = (words.slice(2).find((word) => !word.includes("=")) ?? "user-failure") as FailReason;
      const fail = { kind: "fail", ...claim, reason, message: options.get("message") ?? "" } as const;
      if (!options.has("left")) return fail;
      const { checkpoint: result, evidence } = checkpointOf(options, "left");
      return { ...fail, result, evidence };
    }
    if (verb === "plan") return { kind: "record-plan", ...claim, plan: planOf(must(words[2], "plan")) };
    const digests = listOf(options.get("digests")).map(digestOf);
    const pinned = options.has("pinned") ? listOf(options.get("pinned")).map(digestOf) : digests;
    return {
      kind: "commit",
      ...claim,
      result: {
        payload: options.get("result") ?? "fine",
        digests,
        ...(options.has("publish") ? { publish: options.get("publish") ?? "" } : {}),
      },
      evidence: { digests: pinned, pinnedForMs: durationOf(options.get("for") ?? "1m") },
    };
  }

  #stage(job: string, name: string): number {
    const { stages } = must(this.state.jobs.get(this.job(job)), `job ${job}`);
    const at = stages.findIndex((stage) => stage.shape.name === name);
    return at === -1 ? Number(name) : at;
  }
}

/** `at=half digests=d pinned=d`: what an attempt has got, and what is pinned of it. */
function checkpointOf(options: Options, name: string): { checkpoint: Checkpoint; evidence: Evidence } {
  const digests = listOf(options.get("digests")).map(digestOf);
  const pinned = options.has("pinned") ? listOf(options.get("pinned")).map(digestOf) : digests;
  return {
    checkpoint: { payload: options.get(name) ?? "", digests },
    evidence: { digests: pinned, pinnedForMs: 60_000 },
  };
}

const labelOf = (task: Task): string => (task.index === -1 ? `${task.stage.shape.name}/plan` : task.plan.key);

const nameOf = (names: ReadonlyMap<string, number>, job: number): string =>
  [...names].find(([, no]) => no === job)?.[0] ?? `job-${job}`;

const tenantIn = (options: Options): { tenant?: string } =>
  options.has("tenant") ? { tenant: options.get("tenant") ?? "" } : {};

/** `kind name=value …`: a refusal, a reason or a reply in one line. */
function factsText(facts: Rejection | WhyReason | object): string {
  const { kind, ...rest } = facts as { kind?: string } & Record<string, unknown>;
  const shown = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      if (typeof value === "boolean") return value ? name : `not-${name}`;
      return `${name}=${Array.isArray(value) ? value.join("+") : String(value)}`;
    });
  return [...(kind === undefined ? [] : [kind]), ...shown].join(" ");
}
