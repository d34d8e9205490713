import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { nextStep, type Knowledge, type Step } from "./machine.ts";

const goal = (more: Partial<Goal> = {}): Goal => ({
  format: 1,
  service: "web",
  region: "eu",
  version: 3,
  previous: null,
  kind: "release",
  halted: false,
  release: "j1-1",
  manifest: "new",
  labels: [],
  stable: "old",
  sharePpm: 1_000_000,
  named: [],
  wave: 0,
  evidence: null,
  ...more,
});
const known = (more: Partial<Knowledge> = {}): Knowledge => ({
  machine: "m1",
  goal: goal(),
  staged: new Set(["old"]),
  running: "old",
  failed: new Set(),
  ...more,
});
const none = { sharePpm: 0 };

const cases: readonly [name: string, Knowledge, Step][] = [
  ["without a goal there is nothing to do", known({ goal: undefined }), { kind: "idle", why: "no goal yet" }],
  ["bytes come first", known(), { kind: "stage", manifest: "new" }],
  ["then the switch", known({ staged: new Set(["old", "new"]) }), { kind: "activate", manifest: "new" }],
  ["AG1: a machine outside the share fetches ahead", known({ goal: goal(none) }), { kind: "stage", manifest: "new" }],
  [
    "AG1: and does not activate",
    known({ goal: goal(none), staged: new Set(["old", "new"]) }),
    { kind: "idle", why: "not in this wave" },
  ],
  [
    "a machine that is named is in the wave whatever its place",
    known({ goal: goal({ ...none, named: ["m1"] }), staged: new Set(["new"]) }),
    { kind: "activate", manifest: "new" },
  ],
  [
    "AG2: what failed here is not tried again by the same release",
    known({ staged: new Set(["new"]), failed: new Set(["j1-1:new"]) }),
    { kind: "idle", why: "this version failed here" },
  ],
  [
    "AG2: another release may try it",
    known({ staged: new Set(["new"]), failed: new Set(["j1-0:new"]) }),
    { kind: "activate", manifest: "new" },
  ],
  [
    "AG3: a halt stops activations",
    known({ goal: goal({ halted: true }), staged: new Set(["new"]) }),
    { kind: "idle", why: "halted" },
  ],
  [
    "AG4: a new machine outside the share takes the stable version",
    known({ goal: goal(none), running: undefined, staged: new Set(["old"]) }),
    { kind: "activate", manifest: "old" },
  ],
  [
    "DEPLOY-21: a new machine within the share takes what ended well last, too, and only then the new version",
    known({ running: undefined, staged: new Set(["old", "new"]) }),
    { kind: "activate", manifest: "old" },
  ],
  [
    "DEPLOY-21: unless that does not run here",
    known({ running: undefined, staged: new Set(["old", "new"]), failed: new Set(["j1-1:old"]) }),
    { kind: "activate", manifest: "new" },
  ],
  [
    "AG4: and fetches it first",
    known({ goal: goal(none), running: undefined, staged: new Set() }),
    { kind: "stage", manifest: "old" },
  ],
  [
    "a rollback to bytes that are still here needs no fetch",
    known({ goal: goal({ kind: "rollback", manifest: "old" }), running: "new", staged: new Set(["old", "new"]) }),
    { kind: "activate", manifest: "old" },
  ],
  [
    "what runs is what should run",
    known({ running: "new", staged: new Set(["new"]) }),
    { kind: "idle", why: "runs what it should" },
  ],
];

describe("an agent's next step", () => {
  for (const [name, knowledge, step] of cases) test(name, () => deepEqual(nextStep(knowledge), step));
});
