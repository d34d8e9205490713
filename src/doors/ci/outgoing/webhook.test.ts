import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import type { FeedItem } from "#kernel/read/feed.ts";
import { ciWebhook } from "./webhook.ts";

const tags = { repository: "o/mill", sha: "abc", branch: "main", workflow: "Tests", event: "push", actor: "ada" };
const run = { id: "0-1-0", at: 0, tenant: "t", job: "j0-1", door: "ci", name: "a push", number: 7, tags } as const;
const stage = { index: 0, name: "build", generation: 1, tasks: 1, done: 0, failed: 0 };
const task = { id: "t0-2", key: "0 build (18)", generation: 1 };

const job = (change: string, phase: string): FeedItem => ({ ...run, kind: "job", change, phase });
const cell = (change: string, phase: string, more: Partial<NonNullable<FeedItem["task"]>> = {}): FeedItem => ({
  ...run,
  kind: "task",
  change,
  phase,
  stage,
  task: { ...task, ...more },
});

/** Event, action or state, and conclusion. */
function said(item: FeedItem): readonly string[] {
  return ciWebhook(item).map(({ event, body }) => {
    type Told = { readonly conclusion?: string | null };
    const { action, state, workflow_run, workflow_job } = body as Readonly<Record<"action" | "state", string>> &
      Readonly<Record<"workflow_run" | "workflow_job", Told | undefined>>;
    const conclusion = (workflow_run ?? workflow_job)?.conclusion;
    return `${event} ${action ?? state}${conclusion ? ` ${conclusion}` : ""}`;
  });
}

describe("events of runs for webhooks", () => {
  const cases: readonly (readonly [string, FeedItem, readonly string[]])[] = [
    ["a new run", job("submitted", "RUNNING"), ["workflow_run requested", "status pending"]],
    [
      "a first plan",
      { ...run, kind: "stage", change: "planned", phase: "RUNNING", stage },
      ["workflow_run in_progress"],
    ],
    ["a later plan", { ...run, kind: "stage", change: "planned", phase: "RUNNING", stage: { ...stage, index: 1 } }, []],
    ["success", job("ended", "SUCCEEDED"), ["workflow_run completed success", "status success"]],
    ["failure", job("ended", "FAILED"), ["workflow_run completed failure", "status failure"]],
    ["cancelled", job("ended", "CANCELLED"), ["workflow_run completed cancelled", "status error"]],
    ["a run that is being cancelled", job("cancelling", "CANCELLING"), []],
    ["a queued job", cell("ready", "READY"), ["workflow_job queued"]],
    ["a running job", cell("started", "RUNNING", { executor: "n1" }), ["workflow_job in_progress"]],
    ["a job that succeeded", cell("committed", "SUCCEEDED"), ["workflow_job completed success"]],
    ["a job that failed", cell("attempt-ended", "FAILED"), ["workflow_job completed failure"]],
    ["a job that is tried again", cell("attempt-ended", "RETRY_PENDING"), []],
    ["a job that never ran", cell("cancelled", "CANCELLED"), ["workflow_job completed cancelled"]],
    ["planning", cell("started", "RUNNING", { planning: true }), []],
    ["a step", { ...cell("reported", "started"), kind: "step" }, []],
  ];
  for (const [what, item, expected] of cases) test(what, () => deepEqual(said(item), expected));

  test("say which repository, commit and job they are about", () => {
    const [event] = ciWebhook(cell("committed", "SUCCEEDED"));
    deepEqual(event?.body, {
      action: "completed",
      workflow_job: {
        id: "t0-2",
        run_id: "j0-1",
        run_attempt: 1,
        workflow_name: "Tests",
        name: "build (18)",
        status: "completed",
        conclusion: "success",
        head_branch: "main",
        head_sha: "abc",
        runner_name: null,
        completed_at: "1970-01-01T00:00:00.000Z",
      },
      repository: { full_name: "o/mill" },
      sender: { login: "ada" },
    });
  });
});
