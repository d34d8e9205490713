/**
 * `npm run sim`       one seed (SIM_SEED, or any), run twice.
 * `npm run sim:hunt`  seed after seed until one fails:
 *                     --seeds N --from N --minutes M --jobs N --double-check every|N|off
 *                     --reached FILE  adds what was reached to FILE, and judges all hunts in it together
 * `--focus a,b` draws more of the named faults, client actions, misbehaviours and shapes. `--trace FILE` keeps all.
 * A failing seed exits with 1 and says how to play it again.
 */
import { execFileSync, fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { blocksOf, unreachedByAll } from "./coverage.ts";
import { differs, failureOf, hunt, merge, type Failure, type HuntPlan, type Totals } from "./hunt.ts";
import { addReached } from "./reached.ts";
import { runSeed } from "./run.ts";
import { describeVerdict, judge } from "./faults/unreachable.ts";

const { values } = parseArgs({
  options: {
    hunt: { type: "boolean", default: false },
    seeds: { type: "string" },
    from: { type: "string" },
    minutes: { type: "string" },
    jobs: { type: "string", default: "1" },
    "double-check": { type: "string" },
    "no-coverage": { type: "boolean", default: false },
    reached: { type: "string" },
    quiet: { type: "boolean", default: false },
    trace: { type: "string" },
    focus: { type: "string", default: "" },
    child: { type: "string" },
  },
});

const focus = values.focus.split(",").filter((name) => name !== "");
const wallMs = (): number => Date.now();

function commit(): string {
  try {
    const run = (...args: string[]) => execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8" }).trim();
    return `${run("rev-parse", "--short", "HEAD")}${run("status", "--porcelain", "--", "..") === "" ? "" : " and changes"}`;
  } catch {
    return "unknown";
  }
}

function report({ seed, what, lastLines }: Failure): void {
  console.log(lastLines.join("\n"));
  console.log(`\nFAILED ${what}`);
  const focused = focus.length > 0 ? ` -- --focus ${focus.join()}` : "";
  console.log(`to play it again: SIM_SEED=${seed} npm run sim${focused}   (commit ${commit()})`);
  process.exitCode = 1;
}

async function one(): Promise<void> {
  const seed = Number(process.env["SIM_SEED"] ?? wallMs() % 2 ** 31);
  console.log(`SIM_SEED=${seed} commit ${commit()}`);
  const lines: string[] = [];
  const sink = values.trace === undefined ? undefined : (line: string) => void lines.push(line);
  const startedMs = wallMs();
  const result = await runSeed(seed, sink ? { sink, focus } : { focus });
  const tookMs = wallMs() - startedMs;
  if (values.trace !== undefined) writeFileSync(values.trace, `${lines.join("\n")}\n`);
  const failure = failureOf(result) ?? (values["double-check"] === "off" ? undefined : await differs(result, focus));
  if (failure) return report(failure);
  const { simulatedMs, turns, hash } = result;
  console.log(`passed: ${(simulatedMs / 1_000).toFixed(1)} simulated s, ${turns} turns in ${tookMs} ms, trace ${hash}`);
}

function planOf(): HuntPlan {
  const check = values["double-check"] ?? "10";
  const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes);
  return {
    from: Number(values.from ?? wallMs() % 2 ** 31),
    step: 1,
    seeds: values.seeds === undefined ? Number.POSITIVE_INFINITY : Number(values.seeds),
    untilMs: wallMs() + minutes * 60_000,
    doubleCheckEvery: check === "off" ? 0 : check === "every" ? 1 : Number(check),
    coverage: !values["no-coverage"],
    focus,
  };
}

async function huntAll(): Promise<void> {
  const plan = planOf();
  const jobs = Math.max(1, Number(values.jobs));
  const startedMs = wallMs();
  console.log(`hunting from SIM_SEED=${plan.from}, commit ${commit()}, ${jobs} at a time`);
  const all: Totals[] = [];
  const running = new Set<Child>();
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const child of running) child.stop();
  };
  // After an interrupt, print what has been seen so far.
  process.on("SIGINT", stop);
  await Promise.all(
    Array.from({ length: jobs }, async (_, lane) => {
      let left = Math.ceil(plan.seeds / jobs);
      for (let from = plan.from + lane; left > 0 && !isOver && wallMs() < plan.untilMs;) {
        const seeds = Math.min(left, seedsAChild);
        const child = startChild({ ...plan, from, step: jobs, seeds });
        running.add(child);
        const totals = await child.totals;
        running.delete(child);
        from += seeds * jobs;
        left -= seeds;
        all.push(totals);
        if (!values.quiet) printProgress(all, (wallMs() - startedMs) / 1_000);
        // One failure is enough: the others stop where they are, and report what they have seen.
        if (totals.failure !== undefined) stop();
      }
    }),
  );
  printTotals(all, (wallMs() - startedMs) / 1_000);
  const { failure } = merge(all);
  if (failure) report(failure);
}

/** A process that has hunted for long becomes slow: garbage of old worlds accumulates. */
const seedsAChild = 400;

type Child = { readonly totals: Promise<Totals>; stop(): void };

/** Messages of a child: the seed that it begins, then its totals. */
type ChildMessage = { readonly seed: number } | { readonly totals: Totals };

function startChild(plan: HuntPlan): Child {
  // JSON has no infinity.
  const text = JSON.stringify(plan, (_, value: unknown) => (value === Number.POSITIVE_INFINITY ? 1e15 : value));
  const child = fork(import.meta.filename, ["--child", text], { serialization: "advanced" });
  let seed = plan.from;
  const totals = new Promise<Totals>((resolve) => {
    child.on("message", (message) => {
      const news = message as ChildMessage;
      if ("totals" in news) resolve(news.totals);
      else seed = news.seed;
    });
    // Not its exit: that is reported at once, while its last message may still be on the way.
    child.on("disconnect", () => resolve(diedIn(seed)));
  });
  // It may just have ended by itself.
  child.on("error", () => {});
  return { totals, stop: () => void (child.connected && child.send("stop", () => {})) };
}

async function asChild(plan: HuntPlan): Promise<void> {
  let untilMs = plan.untilMs;
  process.on("message", () => (untilMs = 0));
  // The parent gets it too, and tells the children when to stop.
  process.on("SIGINT", () => {});
  const live: HuntPlan = {
    ...plan,
    get untilMs() {
      return untilMs;
    },
  };
  const tell = (news: ChildMessage, then = (): void => {}): void => void process.send?.(news, then);
  const totals = await hunt(live, wallMs, (seed) => tell({ seed }));
  tell({ totals }, () => process.connected && process.disconnect?.());
}

/** Out of memory, or killed: its results so far are lost. */
function diedIn(seed: number): Totals {
  const failure = { seed, what: "the process that played this seed died; why stands above", lastLines: [] };
  return { ...merge([]), unreached: undefined, failure };
}

function printProgress(all: readonly Totals[], tookS: number): void {
  const { seeds, simulatedMs } = merge(all);
  console.log(`  so far ${seeds} seeds, ${hours(simulatedMs)} simulated hours, ${tookS.toFixed(0)} s`);
}

const hours = (ms: number): string => (ms / 3_600_000).toFixed(2);

/** This many seeds reach every branch of `decide`: a branch that they miss is no longer checked. */
const longHunt = 5_000;

function printTotals(all: readonly Totals[], tookS: number): void {
  const { seeds, doubled, simulatedMs, turns, tally } = merge(all);
  console.log(
    `${seeds} seeds (${doubled} run twice) in ${tookS.toFixed(1)} s: ${(seeds / tookS).toFixed(1)} seeds/s, ` +
      `${hours(simulatedMs)} simulated hours, ${turns} turns`,
  );
  if (values.quiet) return;
  for (const [kind, counts] of Object.entries(tally))
    console.log(
      `${kind}: ${Object.entries(counts)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, times]) => `${name} ${times}`)
        .join(", ")}`,
    );
  const reached = all.flatMap(({ unreached }) => (unreached ? [unreached] : []));
  if (reached.length === 0) return;
  const hunted = { seeds, unreached: unreachedByAll(reached) };
  const together = values.reached === undefined ? hunted : addReached(values.reached, hunted);
  if (together.seeds > seeds) console.log(`with the hunts before, ${together.seeds} seeds:`);
  const verdict = judge(blocksOf(together.unreached));
  for (const line of describeVerdict(verdict)) console.log(line);
  const isLong = together.seeds >= longHunt && focus.length === 0;
  if (verdict.wrongExcuses.length > 0 || (isLong && verdict.decide.length > 0)) process.exitCode = 1;
}

if (values.child !== undefined) await asChild(JSON.parse(values.child) as HuntPlan);
else if (values.hunt) await huntAll();
else await one();
