import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import { censusOf, countOf } from "#doors/deploy/fleet/census.ts";
import type { Known } from "#doors/deploy/fleet/tally.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { membersOf } from "#doors/deploy/goal/membership.ts";
import { ServiceFile } from "#doors/deploy/service/service-file.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import { questionOf } from "./look.ts";
import { viewRelease } from "./release-view.ts";
import { tellMachine, tellRelease, tellWave, type TellFacts } from "./tell.ts";
import { gridLines, newLines } from "./terminal.ts";

const service = ServiceFile.parse({
  service: "web",
  run: { exec: ["web"] },
  targets: { regions: ["eu"] },
  waves: [{ share: "10%" }, { share: "100%", approve: 2, approvers: ["ada", "bob"] }],
});
const manifest = `${"a".repeat(64)}/1`;
const machine = (name: string, state: string, running: string | null, agoMs = 100): Known => ({
  isHeld: true,
  agoMs: 0,
  tenant: "acme",
  machine: name,
  region: "eu",
  labels: [],
  reports: [
    { machine: name, service: "web", state: state as "healthy", running, goalVersion: 3, agoMs, why: "says so" },
  ],
});
const [first = ""] = membersOf(["m1", "m2"], "j1-1", 100_000);
const second = first === "m1" ? "m2" : "m1";
const goal: Goal = {
  format: 1,
  service: "web",
  region: "eu",
  version: 4,
  previous: null,
  kind: "release",
  halted: false,
  release: "j1-1",
  manifest,
  labels: [],
  stable: null,
  sharePpm: 100_000,
  named: [first],
  wave: 0,
  evidence: null,
};
const pin = { machine: first, manifest, by: "ada", why: "", untilMs: 1 };
const stage = (no: number, name: string, phase: StageView["phase"], more: Partial<StageView> = {}): StageView => ({
  stage: no,
  name,
  needs: no === 0 ? [] : [no - 1],
  phase,
  reason: "",
  generation: 1,
  tasks: 1,
  done: 0,
  failed: 0,
  running: phase === "RUNNING" ? 1 : 0,
  waitsForSignals: [],
  ...more,
});
const task = (no: number, steps: TaskView["steps"] = [], payload?: object): TaskView => ({
  task: no,
  job: 1,
  stage: no,
  key: "",
  kind: "",
  phase: "RUNNING",
  planning: false,
  generation: 1,
  attempts: 1,
  claims: [],
  result: payload && { payload: JSON.stringify(payload), digests: [] },
  lastFailure: undefined,
  steps,
  retryInMs: undefined,
});
const running: JobView = {
  job: 1,
  tenant: "acme",
  door: "deploy",
  name: "web",
  phase: "RUNNING",
  reason: "",
  priority: 0,
  spec: "",
  submittedAtMs: 0,
  endedAtMs: undefined,
  subscribers: 0,
  stages: [
    stage(0, "build", "COMPLETED"),
    stage(1, "wave-1", "RUNNING"),
    stage(2, "wave-2", "BLOCKED"),
    stage(3, "finish", "BLOCKED"),
  ],
  tasks: [
    task(0, [], { manifest }),
    task(1, [{ step: 1, name: "1 of 1 are still staging or starting", status: "progress" }]),
  ],
};
const machines = { first: machine(first, "staging", null), second: machine(second, "staged", "old") };
const facts = (more: Partial<TellFacts> = {}, known: readonly Known[] = Object.values(machines)): TellFacts => {
  const all = {
    jobId: "j1-1",
    view: running,
    about: { kind: "release", release: { service, sha: "4f2c91a", repository: "/r" } } as const,
    goals: new Map([["eu", goal]]),
    paused: undefined,
    waits: [],
    ...more,
  };
  const question = questionOf({ tenant: "acme", labels: [], ...all });
  return { census: censusOf([countOf(known, question)], new Set(), question), ...all };
};
const approving: JobView = {
  ...running,
  stages: [
    stage(0, "build", "COMPLETED"),
    stage(1, "wave-1", "COMPLETED"),
    stage(2, "wave-2", "READY", {
      waitsForSignals: ["approve", "reject"],
      signals: [
        { id: "1", name: "approve", payload: "eve" },
        { id: "2", name: "approve", payload: "ada" },
      ],
    }),
  ],
};

const told: readonly [string, readonly string[] | undefined, RegExp][] = [
  [
    "a wave that stages names its machines",
    tellRelease(facts()),
    /wave 1 \(10%\) running: 1 of 1 are still.*staging: says so/s,
  ],
  ["a pause", tellRelease(facts({ paused: { by: "ada", atMs: 0 } })), /paused by ada/],
  ["a hold", tellRelease(facts({ hold: "frozen: Fri" })), /frozen: Fri: no wave begins meanwhile/],
  [
    "a pin",
    tellMachine(facts({ goals: new Map([["eu", { ...goal, pins: [pin] }]]) }), machines.first),
    /pinned by ada until/,
  ],
  ["a halt", tellRelease(facts({ goals: new Map([["eu", { ...goal, halted: true }]]) })), /eu is halted/],
  ["only approvals that count", tellRelease(facts({ view: approving })), /it takes 2 approvals by ada, bob, from ada/],
  ["a wave that is blocked", tellWave(facts(), 2), /wave 2 \(100%\) waiting: it takes 2 approvals/],
  [
    "a machine of the wave",
    tellMachine(facts(), machines.first),
    /goal version 4 names it.*follows version 3; version 4/s,
  ],
  ["a machine of a later wave", tellMachine(facts(), machines.second), /its turn comes with wave 2/],
  [
    "a lock",
    tellRelease(
      facts({
        view: { ...running, phase: "WAITING" },
        waits: [
          {
            task: 0,
            stage: 0,
            key: "",
            phase: "",
            because: { kind: "lock", name: "service web", heldBy: [7], ahead: 0 },
          },
        ],
      }),
    ),
    /another release of web/,
  ],
];

describe("what a release waits for", () => {
  for (const [name, lines, wanted] of told) test(name, () => match(lines?.join("\n") ?? "nothing", wanted));
  test("a machine that is no target is not explained", () =>
    equal(tellMachine(facts(), { ...machines.first, region: "us" }), undefined));
});

describe("the picture of a release", () => {
  test("counts machines by state and wave", () => {
    const { regions, waves } = viewRelease(
      facts({}, [machine(first, "healthy", manifest), machine(second, "healthy", "old", 60_000)]),
    );
    equal(regions[0]?.states.healthy, 1);
    equal(regions[0]?.states.silent, 1);
    deepEqual(
      waves.map((wave) => wave.regions[0]),
      [
        { region: "eu", machines: 1, running: 1 },
        { region: "eu", machines: 2, running: 1 },
      ],
    );
  });
  test("is printed once where only numbers change", () => {
    const shown = viewRelease(facts());
    match(newLines(shown, undefined).join("\n"), /build completed\nwave-1 running/);
    deepEqual(newLines(shown, shown), []);
    match(gridLines(shown)[1] ?? "", /^eu +4 +0\/1 … +0\/2 +2, 1 staging, 1 staged$/);
  });
});

test("a release that was stored before health checks existed is read as one without", () => {
  const { checks: _, ...before } = service.health;
  const spec = JSON.stringify({ service: { ...service, health: before }, sha: "4f2c91a", repository: "/r" });
  deepEqual(specWithService<{ service: ServiceFile }>(spec).service.health.checks, []);
});
