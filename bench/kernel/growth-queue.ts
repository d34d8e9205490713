/** The kernel alone, with this many one-task jobs queued. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Command } from "#kernel/model/command.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { benchLimits } from "./limits.ts";
import { step } from "#kernel/step.ts";
import { median } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import { jobOf, nextNo, offers } from "./work.ts";

const tenants = 20;
const cyclesPerRound = 2_000;
const warmUpCycles = 40_000;
const rounds = 7;

export function measureQueue(report: Report, sizes: readonly number[]): void {
  let nowMs = 1_000_000;
  const ask = <T>(state: State, command: Command): T => {
    const outcome = step(state, command, (nowMs += 1));
    if (!outcome.ok) throw new Error(`${command.kind} was refused: ${JSON.stringify(outcome.rejection)}`);
    return outcome.reply as T;
  };
  const collect = collector();
  collect();
  const emptyBytes = process.memoryUsage().heapUsed;
  const state = createState(0, benchLimits);
  const submit = (no: number): void => void ask(state, jobOf(`job-${no}`, 1, { tenant: `tenant-${no % tenants}` }));
  const cycle = (): void => {
    submit(nextNo());
    const nonce = `n${nextNo()}`;
    const reserve: Command = { kind: "reserve", executor: "e", offers, prefer: [], count: 1, start: true, nonce };
    const [grant] = ask<Replies["reserve"]>(state, reserve).grants;
    if (!grant) throw new Error("nothing was granted");
    const { task, token, job } = grant;
    const result = { payload: "0 exit", digests: [] };
    ask(state, { kind: "commit", executor: "e", task, token, result, evidence: { digests: [], pinnedForMs: 0 } });
    ask(state, { kind: "forget", jobs: [job] });
  };
  for (let i = 0; i < 200; i += 1) submit(nextNo());
  for (let i = 0; i < warmUpCycles; i += 1) cycle(); // compiled by now
  const rows: Figure[][] = [];
  const measured = sizes.map((size) => {
    while (state.ready.size < size) submit(nextNo());
    collect();
    const bytesEach = (process.memoryUsage().heapUsed - emptyBytes) / size;
    // While the queue was filled nothing was claimed: V8 has discarded that code by now.
    for (let i = 0; i < warmUpCycles; i += 1) cycle();
    const touchedBefore = state.ready.touched;
    const cpuUs = median(Array.from({ length: rounds }, () => cpuOf(cycle)));
    const touched = (state.ready.touched - touchedBefore) / (rounds * cyclesPerRound);
    rows.push([size, touched, cpuUs, bytesEach]);
    return { touched, cpuUs, bytesEach };
  });
  report.table(
    "One-task jobs of 20 tenants in line: submit, claim, commit and forget one more",
    ["queued", "entries touched", "CPU us", "bytes each"],
    rows,
  );
  const [first, last] = [measured[0], measured.at(-1)];
  if (!first || !last) return;
  report.figure("touched_growth", last.touched / first.touched);
  report.figure("cpu_growth", last.cpuUs / first.cpuUs);
  report.figure("bytes_per_queued_task", last.bytesEach);
  report.target({
    what: "entries touched a task, most queued / fewest",
    atMost: 1.05,
    got: last.touched / first.touched,
  });
  report.target({ what: "CPU a task, most queued / fewest", atMost: 1.5, got: last.cpuUs / first.cpuUs });
  report.target({ what: "bytes of memory a queued task", atMost: 1_024, got: last.bytesEach });
}

function cpuOf(cycle: () => void): number {
  const before = process.cpuUsage();
  for (let i = 0; i < cyclesPerRound; i += 1) cycle();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / cyclesPerRound;
}

/** Memory is exact only after a full garbage collection. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
