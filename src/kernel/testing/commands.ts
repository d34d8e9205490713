/** Test support: the transcript commands that can be parsed without knowing earlier lines. */
import { must } from "#base/assert.ts";
import type { Command, Submit } from "#kernel/model/command.ts";
import type { Notice, NoticeOutcome, Plan, PlanDecides, Tag, TaskSet } from "#kernel/model/model.ts";
import { durationOf, listOf, lockOf, optionsOf, stagesOf, taskSetOf, wholeOf } from "./parse.ts";

export const digestOf = (letter: string): string => `${letter.charCodeAt(0).toString(16).padStart(64, "0")}/1`;

/** `j key=k by=ann : a[x]`: a name, options, and stages after the colon. */
export function submitOf(words: readonly string[]): Submit {
  const colon = words.indexOf(":");
  const name = must(words[0], "name of the job");
  const options = optionsOf(words.slice(1, colon));
  const key = options.get("key");
  const merge = options.get("merge");
  const by = options.get("by");
  const lock = options.get("lock");
  const reuse = listOf(options.get("reuse")).map((word) => {
    const [stage = "", taskKey = "", spec = `do-${taskKey}`] = word.split(".");
    return { stage, key: taskKey, spec, result: { payload: "reused", digests: [digestOf(taskKey)] } };
  });
  const pinned = listOf(options.get("pinned")).map(digestOf);
  return {
    kind: "submit",
    tenant: options.get("tenant") ?? "acme",
    door: options.get("door") ?? "front",
    name,
    ...(key === undefined ? {} : { requestKey: key }),
    payloadHash: options.get("hash") ?? "h",
    ...(merge === undefined ? {} : { mergeKey: merge }),
    ...(by === undefined ? {} : { subscriber: by }),
    ...(options.has("grace") ? { leaveGraceMs: durationOf(options.get("grace") ?? "") } : {}),
    priority: wholeOf(options, "prio", 0),
    spec: options.get("spec") ?? "",
    stages: stagesOf(words.slice(colon + 1)),
    deadlineMs: durationOf(options.get("deadline") ?? "10h"),
    ...(options.has("cancelgrace") ? { cancelGraceMs: durationOf(options.get("cancelgrace") ?? "") } : {}),
    ...(lock === undefined ? {} : { lock: lockOf(lock) }),
    ...(reuse.length === 0 ? {} : { reuse }),
    ...(options.has("tags") ? { tags: tagsOf(options.get("tags")) } : {}),
    ...(options.has("series") ? { series: options.get("series") ?? "" } : {}),
    ...(options.has("notify") ? { notify: noticesOf(options.get("notify")) } : {}),
    ...(options.has("pinned") ? { reuseEvidence: { digests: pinned, pinnedForMs: 1_000 } } : {}),
  };
}

/** `1.7.0.child`: shard, job, stage and name. */
const noticesOf = (text: string | undefined): Notice[] =>
  listOf(text).map((word) => {
    const [shard, job, stage, name = ""] = word.split(".");
    return { shard: Number(shard), job: Number(job), stage: Number(stage), name };
  });

/** `repo:mill,branch:main`. */
export const tagsOf = (text: string | undefined): Tag[] =>
  listOf(text).map((word) => {
    const [name = "", value = ""] = word.split(":");
    return { name, value };
  });

/** `m by=bob`: a merge key and options; joins a live job and starts none. */
export function joinOf(words: readonly string[]): Submit {
  const [mergeKey = "", ...options] = words;
  return { ...submitOf(["", ...options, ":"]), joinOnly: true, mergeKey, deadlineMs: 0 };
}

/** Commands of owners, operators and other shards. */
export function adminOf(verb: string, words: readonly string[], jobOf: (name: string) => number): Command {
  const options = optionsOf(words);
  const [first = ""] = words;
  switch (verb) {
    case "drain":
      return { kind: "drain", executor: first, reason: options.get("reason") ?? "told to" };
    case "resume":
      return { kind: "resume", executor: first };
    case "tenant":
      return {
        kind: "set-tenant",
        tenant: first,
        weight: wholeOf(options, "weight", 1),
        runningMax: wholeOf(options, "running", 0),
        queuedMax: wholeOf(options, "queued", 0),
        home: wholeOf(options, "home", 0),
      };
    case "lend":
      return {
        kind: "lend-quota",
        tenant: first,
        borrower: wholeOf(options, "to", 1),
        want: wholeOf(options, "want", 1),
        running: wholeOf(options, "running", 0),
        forMs: durationOf(options.get("for") ?? "10s"),
        ...(options.has("holds") && { holds: wholeOf(options, "holds", 0) }),
      };
    case "take": {
      const forMs = durationOf(options.get("for") ?? "10s");
      return { kind: "take-quota", tenant: first, slots: wholeOf(options, "slots", 0), forMs };
    }
    case "notified": {
      const [, notice, outcome] = words;
      return { kind: "notified", job: jobOf(first), notice: Number(notice), outcome: outcome as NoticeOutcome };
    }
    case "forget":
      return { kind: "forget", jobs: words.map((word) => jobOf(word)) };
    case "takeover":
      return { kind: "take-over", epoch: Number(first), node: "n1" };
    case "tick":
    case "leap":
      return { kind: "tick" };
    default:
      throw new RangeError(`no such word in a transcript: ${verb}`);
  }
}

/** `skip`, `fail`, `wait=10s:go,stop`, or tasks as in `[x,y];tries=2`. */
/** `[x];on=gpu&[y]&says;failfast;lock=n`: several sets, and what the plan decides about its stage. */
function tasksOf(text: string): Plan {
  const parts = text.split("&");
  const sets = parts.filter((part) => part.startsWith("[")).map(taskSetOf);
  const says = parts.find((part) => part.startsWith("says"));
  if (says === undefined && sets.length === 1) return { kind: "tasks", set: sets[0] as TaskSet };
  return says === undefined ? { kind: "tasks", sets } : { kind: "tasks", sets, decides: decidesOf(says) };
}

export function decidesOf(says: string): PlanDecides {
  const options = optionsOf(says.split(";").slice(1));
  const flag = (name: string, key: string) => (options.has(name) ? { [key]: options.get(name) === "true" } : {});
  const lock = options.get("lock");
  return {
    ...flag("failfast", "failFast"),
    ...flag("mayfail", "mayFail"),
    ...(options.has("par") ? { parallelMax: wholeOf(options, "par", 0) } : {}),
    ...(lock === undefined ? {} : { lock: lockOf(lock) }),
  };
}

export function planOf(text: string): Plan {
  if (text === "skip" || text === "fail") return { kind: text, reason: `${text} it` };
  if (!text.startsWith("wait=")) return tasksOf(text);
  const [time = "", signals] = text.slice("wait=".length).split(":");
  return { kind: "wait", forMs: durationOf(time), signals: listOf(signals) };
}
