/** Test support: parses the parts of a transcript line (transcript.ts) into the values that commands consist of. */
import { assert, must } from "#base/assert.ts";
import { parseDurationMs } from "#base/units.ts";
import type {
  FailureCounts,
  LockSpec,
  Speculation,
  StageSpec,
  TaskPlan,
  TaskSet,
  TaskTemplate,
} from "#kernel/model/model.ts";

export type Options = ReadonlyMap<string, string>;

export const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** `name=value` options; a bare name means "true". */
export const optionsOf = (words: readonly string[]): Options =>
  new Map(
    words.map((word) => {
      const at = word.indexOf("=");
      return at === -1 ? [word, "true"] : [word.slice(0, at), word.slice(at + 1)];
    }),
  );

export const listOf = (text: string | undefined): string[] =>
  text === undefined || text === "" ? [] : text.split(/[,+]/);

export const durationOf = (text: string): number => must(parseDurationMs(text), `duration in "${text}"`);

export const wholeOf = (options: Options, name: string, otherwise: number): number =>
  Number(options.get(name) ?? otherwise);

export function lockOf(text: string): LockSpec {
  const [name = "", limit = "1", queueMax = "1", cancel] = text.split(":");
  return { name, limit: Number(limit), queueMax: Number(queueMax), cancelInProgress: cancel === "cancel" };
}

const durationIn = (options: Options, name: string, otherwise: string): number =>
  durationOf(options.get(name) ?? otherwise);

/** `90:150:2`: percentile, factor in percent, slots. */
function speculationOf(text: string): Speculation {
  const [percentile = 50, factorPercent = 150, slots = 1] = text.split(":").map(Number);
  return { percentile, factorPercent, slots };
}

/** `user-failure:2,timed-out:1` */
const retriesOf = (text: string): FailureCounts =>
  Object.fromEntries(
    text
      .split(",")
      .map((one) => one.split(":"))
      .map(([reason = "", count]) => [reason, Number(count)]),
  );

export function templateOf(options: Options): TaskTemplate {
  const backoffMs = durationIn(options, "backoff", "1s");
  return {
    kind: options.get("kind") ?? "run",
    requires: listOf(options.get("on")),
    leaseMs: durationIn(options, "lease", "10s"),
    attemptsMax: wholeOf(options, "tries", 3),
    retryOn: options.get("retry") === "any" ? "any" : "infrastructure",
    backoffMs,
    backoffMsMax: durationIn(options, "backoffMax", "1m"),
    queueMs: durationIn(options, "queue", "1h"),
    attemptMs: durationIn(options, "attempt", "1h"),
    effects: options.has("outside") ? "outside" : "pure",
    speculate: options.has("speculate"),
    graceMs: durationIn(options, "grace", "0s"),
    ...(options.has("stop") ? { stopMs: durationIn(options, "stop", "") } : {}),
    ...(options.has("losses") ? { lossesMax: wholeOf(options, "losses", 0) } : {}),
    ...(options.has("retries") ? { retries: retriesOf(options.get("retries") ?? "") } : {}),
    ...(options.has("own") ? { lock: lockOf(options.get("own") ?? "") } : {}),
    ...(options.has("spare") ? { speculation: speculationOf(options.get("spare") ?? "") } : {}),
  };
}

/** `x,y@host,z*3`: keys, with an affinity after `@`; `z*3` is z1, z2, z3. A spec other than the key's: `x!spec`. */
function plansOf(text: string): TaskPlan[] {
  return listOf(text).flatMap((word): TaskPlan[] => {
    const [, name = "", spec, affinity, count] = must(/^(\w+)(?:!(\w+))?(?:@(\w+))?(?:\*(\d+))?$/.exec(word), word);
    const keys = count === undefined ? [name] : Array.from({ length: Number(count) }, (_, i) => `${name}${i + 1}`);
    return keys.map((key) => ({ key, spec: spec ?? `do-${key}`, ...(affinity === undefined ? {} : { affinity }) }));
  });
}

/** `[x,y];tries=2;lease=1s` */
export function taskSetOf(text: string): TaskSet {
  const [, tasks = "", flags = ""] = must(/^\[(.*?)\](?:;(.*))?$/.exec(text), `tasks in "${text}"`);
  return setOf(templateOf(optionsOf(flags.split(";").filter(Boolean))), tasks);
}

/** `#5` is an array of five tasks, `#5+10` one whose first index is 10; anything else is a list of keys. */
function setOf(template: TaskTemplate, text: string): TaskSet {
  const array = /^#(\d+)(?:\+(\d+))?$/.exec(text);
  if (!array) return { template, tasks: plansOf(text) };
  const [, count, first] = array;
  return {
    template,
    array: { count: Number(count), spec: "do-one", ...(first === undefined ? {} : { first: Number(first) }) },
  };
}

/**
 * `build[x,y] test[z]<build;failfast ship[?]<build,test;end`: stages with their tasks (`?`: to be planned), their
 * needs, and flags.
 */
export function stagesOf(words: readonly string[]): StageSpec[] {
  const parsed = words.map((word) => {
    const [, name = "", tasks = "", needs, flags] = must(
      /^(\w+)\[(.*?)\](?:<([\w,]+))?(?:;(.*))?$/.exec(word),
      `stage in "${word}"`,
    );
    return { name, tasks, needs: listOf(needs), options: optionsOf((flags ?? "").split(";").filter(Boolean)) };
  });
  return parsed.map(({ name, tasks, needs, options }) => {
    const template = templateOf(options);
    const { kind, requires, leaseMs, attemptsMax } = template;
    const deadlineMs = durationIn(options, "deadline", "1h");
    const lock = options.get("lock");
    return {
      name,
      needs: needs.map((need) => indexOf(parsed, need)),
      after: options.has("end") ? "end" : "success",
      ...(tasks === "?"
        ? { plan: { kind, requires, leaseMs, attemptsMax, deadlineMs } }
        : { tasks: setOf(template, tasks) }),
      failFast: options.has("failfast"),
      mayFail: options.has("mayfail"),
      parallelMax: wholeOf(options, "par", 0),
      ...(lock === undefined ? {} : { lock: lockOf(lock) }),
      ...(options.has("manifest") ? { manifest: true } : {}),
    };
  });
}

function indexOf(stages: readonly { readonly name: string }[], name: string): number {
  const at = stages.findIndex((stage) => stage.name === name);
  assert(at !== -1, `no stage ${name}`);
  return at;
}
