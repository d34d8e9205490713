import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import { JobFollower } from "./view.ts";

const task = (no: number, phase: TaskView["phase"]): TaskView => ({
  task: no,
  job: 1,
  stage: 0,
  key: String(no),
  kind: "shell.command",
  phase,
  planning: false,
  generation: 1,
  attempts: 1,
  claims: [],
  result: phase === "SUCCEEDED" ? { payload: JSON.stringify({ tail: `hello ${no}\n` }), digests: [] } : undefined,
  lastFailure: undefined,
  steps: [],
  retryInMs: undefined,
});

const view = (phase: JobView["phase"], tasks: readonly TaskView[]): JobView => ({
  job: 1,
  tenant: "t",
  door: "shell",
  name: "n",
  phase,
  reason: "",
  priority: 0,
  spec: "",
  submittedAtMs: 0,
  endedAtMs: undefined,
  subscribers: 0,
  tasks,
  stages: [
    {
      stage: 0,
      name: "s",
      needs: [],
      phase: phase === "RUNNING" ? "RUNNING" : "COMPLETED",
      reason: "",
      generation: 1,
      tasks: tasks.length,
      done: tasks.filter((each) => each.phase === "SUCCEEDED").length,
      failed: 0,
      running: 0,
      waitsForSignals: [],
    },
  ],
});

test("a follower that was cut off for a while says what it missed, once", () => {
  const follower = new JobFollower("j0-1", (_door, payload) =>
    (JSON.parse(payload) as { tail: string }).tail.trimEnd(),
  );
  const say = (message: JobView): readonly string[] =>
    follower.lines({ kind: "snapshot", stamp: { epoch: 1, seq: 1 }, view: message });
  deepEqual(say(view("RUNNING", [task(1, "SUCCEEDED"), task(2, "RUNNING"), task(3, "READY")])), ["j0-1  RUNNING  n"]);
  const later = view("SUCCEEDED", [task(1, "SUCCEEDED"), task(2, "SUCCEEDED"), task(3, "SUCCEEDED")]);
  deepEqual(say(later), ["  s/2: done: hello 2", "  s/3: done: hello 3", "  s: COMPLETED", "j0-1  SUCCEEDED  n"]);
  deepEqual(say(later), []);
});
