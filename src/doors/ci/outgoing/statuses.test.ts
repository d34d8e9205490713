import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { FeedItem } from "#kernel/read/feed.ts";
import { statusFormats } from "./statuses.ts";

const sha = "a".repeat(40);
const tags = { repository: "o/mill", sha, branch: "main", workflow: "Tests", event: "push", actor: "ada" };
const run = { id: "0-1-0", at: 0, tenant: "t", job: "j0-1", door: "ci", name: "a push", number: 7, tags } as const;
const stage = { index: 0, name: "build", generation: 1, tasks: 1, done: 0, failed: 0 };
const job = (change: string, phase: string, more: Partial<FeedItem> = {}): FeedItem => ({
  ...run,
  kind: "job",
  change,
  phase,
  ...more,
});
const cell = (change: string, phase: string, planning = false): FeedItem => ({
  ...run,
  kind: "task",
  change,
  phase,
  stage,
  task: { id: "t0-2", key: "0 build (18)", generation: 1, ...(planning && { planning }) },
});
/** The id stands for the result. */
const resultOf = ({ id }: FeedItem): string | undefined =>
  id === "failure" ? JSON.stringify({ result: "failure", outputs: {}, isFailureAllowed: false }) : undefined;
const sent = (format: string, item: FeedItem) =>
  statusFormats[format]?.render(item, resultOf(item)).map(({ path, body }) => ({ path, ...body }));

describe("statuses of commits", () => {
  const cases: readonly (readonly [string, FeedItem, string | undefined, string | undefined])[] = [
    ["a new run", job("submitted", "RUNNING"), "pending", "pending"],
    ["a run that succeeded", job("ended", "SUCCEEDED"), "success", "success"],
    ["a run that failed", job("ended", "FAILED"), "failure", "failed"],
    ["a cancelled run", job("ended", "CANCELLED"), "error", "canceled"],
    ["a run that is cancelled, not yet over", job("cancelling", "CANCELLING"), undefined, undefined],
    ["a job that waits", cell("ready", "READY"), "pending", "pending"],
    ["a job that runs", cell("started", "RUNNING"), "pending", "running"],
    ["a job that is done", cell("committed", "SUCCEEDED"), "success", "success"],
    ["a job that is done, and failed", { ...cell("committed", "SUCCEEDED"), id: "failure" }, "failure", "failed"],
    ["an attempt of several", cell("attempt-ended", "RETRY_PENDING"), undefined, undefined],
    ["the last attempt", cell("attempt-ended", "FAILED"), "failure", "failed"],
    ["a plan", cell("committed", "SUCCEEDED", true), undefined, undefined],
    ["a run of no commit", job("submitted", "RUNNING", { tags: { repository: "o/mill" } }), undefined, undefined],
  ];
  for (const [what, item, github, gitlab] of cases)
    test(what, () => {
      type Sent = { readonly state?: string };
      for (const format of ["ci:github", "ci:gitea"])
        equal((sent(format, item)?.[0] as Sent | undefined)?.state, github, format);
      equal((sent("ci:gitlab", item)?.[0] as Sent | undefined)?.state, gitlab);
    });

  test("in the words and at the path of each forge", () => {
    const failed = job("ended", "FAILED", { reason: `failed: build ${"x".repeat(200)}` });
    deepEqual(sent("ci:github", failed), [
      {
        path: `/repos/o/mill/statuses/${sha}`,
        state: "failure",
        context: "Tests (push)",
        description: `j0-1 failed: failed: build ${"x".repeat(200)}`.slice(0, 140),
      },
    ]);
    deepEqual(sent("ci:gitlab", cell("started", "RUNNING")), [
      {
        path: `/projects/o%2Fmill/statuses/${sha}`,
        state: "running",
        name: "Tests / build (18) (push)",
        description: "j0-1 is running",
      },
    ]);
    const head = "b".repeat(40);
    const pull = job("submitted", "RUNNING", { tags: { ...tags, head } });
    equal(sent("ci:gitea", pull)?.[0]?.path, `/repos/o/mill/statuses/${head}`);
  });
});
