/** Holds running jobs of CI in a kernel on SQLite, in a process of its own, and says what they cost. */
import { systemClock } from "#door/system-clock.ts";
import { planRun, planStage, taskLabel } from "#doors/ci/plan.ts";
import type { RunRecord, StoredRun } from "#doors/ci/runs/record.ts";
import type { Submit } from "#kernel/model/command.ts";
import { Rig } from "#bench/kernel/rig.ts";

const [jobs = 0, runners = 1] = process.argv.slice(2).map(Number);
const each = Math.ceil(jobs / runners);
const renewEveryMs = 30_000;
const together = 100;

const record: RunRecord = {
  file: {
    path: ".github/workflows/build.yml",
    text: ["on: push", "jobs:", "  build:", "    runs-on: x", "    steps:", "      - uses: actions/checkout@v4"].join(
      "\n",
    ),
  },
  github: {
    ref: "refs/heads/main",
    repository: "mill/flour",
    sha: "0".repeat(40),
    event_name: "push",
    actor: "miller",
  },
  vars: {},
  inputs: {},
  source: { repository: "mill/flour", sha: "0".repeat(40) },
};
const { file, ...rest } = record;
const stored: StoredRun = {
  about: {
    title: "build",
    workflow: "build",
    path: file.path,
    repository: "mill/flour",
    event: "push",
    ref: "refs/heads/main",
    sha: "0".repeat(40),
    actor: "miller",
  },
  files: { value: [file] },
  rest: { value: rest },
};
const digest = `${"0".repeat(64)}/1`;

/** A run as the door submits it, with its stage planned already: planners are not what is measured. */
function runOf(no: number): Submit {
  const wishes = { tenant: "t", shardKey: "t/ci mill/flour", unique: String(no) };
  const order = planRun(record, { stored, digest }, wishes);
  const { shardKey: _shardKey, series: _series, ...job } = order;
  return {
    kind: "submit",
    ...job,
    payloadHash: String(no),
    stages: order.stages.map(({ plan: _plan, ...stage }, at) =>
      at === 0 ? { ...stage, tasks: planned } : { ...stage, tasks: { ...planned, tasks: [] } },
    ),
  } as Submit;
}

const { planned, labels } = (() => {
  const inputs = {
    spec: JSON.stringify(stored),
    stage: "build",
    generation: 1,
    needs: [],
    signals: [],
    results: [],
    next: undefined,
  };
  const plan = planStage(inputs, record);
  const set = plan.kind === "tasks" ? plan.sets?.[0] : undefined;
  if (!set) throw new Error(`the stage is planned as ${plan.kind}`);
  // long enough to give out all of them before the first is renewed
  const template = { ...set.template, leaseMs: 600_000 };
  return { planned: { ...set, template }, labels: [...template.requires, taskLabel] };
})();

await using rig = await Rig.start({ store: { kind: "sqlite" } });
const memory = (): number => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};
const emptyBytes = memory();
const held = new Map<string, readonly { readonly task: number; readonly token: number }[]>();
for (let no = 0; no < runners; no += 1) {
  const executor = `runner-${no}`;
  for (let from = 0; from < each; from += together)
    await rig.askMany<"submit">(
      0,
      Array.from({ length: Math.min(together, each - from) }, (_, n) => runOf(no * each + from + n)),
    );
  const offers = [...new Set([...labels, "runner=x"])].toSorted();
  const reserve = { kind: "reserve", executor, offers, prefer: [], count: each, start: true, nonce: `n${no}` } as const;
  const { grants } = await rig.ask<"reserve">(0, reserve);
  held.set(
    executor,
    grants.map(({ task, token }) => ({ task, token })),
  );
}
const count = [...held.values()].reduce((sum, claims) => sum + claims.length, 0);
await systemClock.sleep(1_000);
const bytesEach = (memory() - emptyBytes) / count;
const cpu = process.cpuUsage();
const beganMs = performance.now();
let slowestMs = 0;
for (const [executor, claims] of held) {
  const atMs = performance.now();
  const { held: kept } = await rig.ask<"renew">(0, { kind: "renew", executor, claims });
  if (kept.length !== claims.length) throw new Error(`${executor} lost ${claims.length - kept.length} claims`);
  slowestMs = Math.max(slowestMs, performance.now() - atMs);
}
const { user, system } = process.cpuUsage(cpu);
const renewUs = (user + system) / count;
process.send?.({
  count,
  bytesEach,
  renewUs,
  slowestMs,
  roundMs: performance.now() - beganMs,
  coreShare: (renewUs * count) / (renewEveryMs * 1_000),
});
