import { equal } from "node:assert/strict";
import { test } from "node:test";
import type { QueryView } from "#doors/batch/endpoints.ts";
import { progressText } from "./progress.ts";

type Stage = QueryView["stages"][number];
const stage = (given: Partial<Stage>): Stage => ({
  wave: 1,
  about: "a",
  id: "a",
  tasks: 0,
  rows: 0,
  bytes: 0,
  cpuMs: 0,
  reused: 0,
  skipped: 0,
  why: [],
  planned: 10,
  running: 0,
  again: 0,
  twice: 0,
  spilled: 0,
  skew: 1,
  ...given,
});
const view = (given: Partial<QueryView>): QueryView => ({
  job: "j0-1",
  name: "q",
  phase: "RUNNING",
  ended: false,
  tasks: 11,
  done: 1,
  submittedAt: "2026-01-01T00:00:00Z",
  plan: "a/1",
  stages: [],
  ...given,
});

test("progress says what is known, and no time before a task has been timed", () => {
  const empty = view({});
  equal(progressText({ ...empty, plan: undefined }), "planning");
  equal(progressText(view({})), "planned");
  equal(
    progressText(view({ foreseen: 3, stages: [stage({ running: 2 })] })),
    "[--------------------] stage 1 of about 3, 0 of 10 tasks, 2 running (1 tasks done in all)",
  );
  equal(
    progressText(view({ foreseen: 3, stages: [stage({ tasks: 5, running: 2, taskMs: 4_000, leftMs: 12_000 })] })),
    "[##########----------] stage 1 of about 3, 5 of 10 tasks, 2 running, about 12 s more for it (1 tasks done in all)",
  );
  const past = [stage({ tasks: 10 }), stage({ planned: 1, running: 1 })];
  equal(
    progressText(view({ tasks: 12, done: 11, foreseen: 2, stages: past })),
    "[--------------------] stage 2, 0 of 1 task, 1 running (11 tasks done in all)",
  );
});
