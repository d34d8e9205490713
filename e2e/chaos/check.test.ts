import { deepEqual, match } from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Event, EventOf } from "#kernel/model/event.ts";
import { AttemptLog, readAttempts } from "./attempts.ts";
import { findViolations, rerun } from "./check.ts";
import { Record } from "./record.ts";

const submitted = (job: number, key: string): EventOf<"job-submitted"> => ({
  kind: "job-submitted",
  job,
  firstTask: job,
  tenant: "t",
  door: "chaos",
  name: "one",
  key,
  keyUntilMs: 1,
  payloadHash: "h",
  priority: 0,
  spec: "",
  stages: [
    {
      name: "s",
      needs: [],
      after: "success",
      failFast: false,
      mayFail: false,
      parallelMax: 0,
      tasks: { template: {} as never, tasks: [{ key: "0", spec: "" }] },
    },
  ],
  deadlineAtMs: 1,
  at: 0,
});
const claimed = (task: number, token: number): Event => ({
  kind: "claimed",
  task,
  token,
  executor: "e",
  leaseMs: 1,
  started: true,
  nonce: "n",
  at: 0,
});
const expired = (task: number, token: number): Event => ({
  kind: "attempt-ended",
  task,
  token,
  outcome: "expired",
  reason: "executor-lost",
  message: "",
  next: { do: "ready" },
  at: 0,
});
const result = { payload: "", digests: [] };
const committed = (task: number, token: number): Event => ({ kind: "committed", task, token, result, at: 0 });
const ended = (job: number): Event => ({ kind: "job-ended", job, phase: "SUCCEEDED", reason: "", at: 0 });

type Line = readonly [what: "start" | "end" | "stopped" | "acknowledged", token: number];

/** One job of one task, described by a log and by its executors. */
function judge(events: readonly Event[], lines: readonly Line[]) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-check-"));
  try {
    const record = new Record();
    for (const [seq, event] of events.entries()) record.add({ shard: 0, seq, epoch: 1, event });
    const log = new AttemptLog(folder, "e");
    log.add("start", { taskId: "t0-1", token: 1 });
    for (const [what, token] of lines) log.add(what, { taskId: "t0-1", token });
    const attempts = readAttempts(folder);
    const acknowledged = [{ jobId: "j0-1", key: "k1", tasks: 1 }];
    return { violations: findViolations({ record, attempts, acknowledged }), again: rerun(attempts).size };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const good: readonly Event[] = [submitted(1, "k1"), claimed(1, 1), committed(1, 1), ended(1)];
const ran: readonly Line[] = [
  ["end", 1],
  ["acknowledged", 1],
];

test("a run without failures has no complaints", () => {
  deepEqual(judge(good, ran), { violations: [], again: 0 });
});

test("an attempt that was lost and repeated is counted, and is not a violation", () => {
  const events = [submitted(1, "k1"), claimed(1, 1), expired(1, 1), claimed(1, 2), committed(1, 2), ended(1)];
  deepEqual(
    judge(events, [
      ["start", 2],
      ["end", 2],
      ["acknowledged", 2],
    ]),
    { violations: [], again: 1 },
  );
});

const wrong: readonly {
  readonly what: string;
  readonly events?: readonly Event[];
  readonly lines?: readonly Line[];
  readonly says: RegExp;
}[] = [
  { what: "a job that was acknowledged is missing", events: [claimed(1, 1), committed(1, 1)], says: /not in the log/ },
  { what: "a job has not ended", events: good.slice(0, 3), says: /has not ended \(K9\)/ },
  { what: "a job ended twice", events: [...good, ended(1)], says: /ended 2 times/ },
  { what: "a key became two jobs", events: [...good, submitted(2, "k1")], says: /bound to j0-1 and j0-2 \(K1\)/ },
  { what: "a task has two results", events: [...good, claimed(1, 2), committed(1, 2)], says: /second result \(K6\)/ },
  {
    what: "a result came under a token that had lost its say",
    events: [submitted(1, "k1"), claimed(1, 1), expired(1, 1), committed(1, 1), ended(1)],
    says: /which is not live \(K3\)/,
  },
  {
    what: "a commit that was acknowledged is missing",
    events: [submitted(1, "k1"), claimed(1, 1), claimed(1, 2), committed(1, 2), ended(1)],
    lines: [...ran, ["start", 2], ["end", 2]],
    says: /acknowledged and is not in the log \(K7\)/,
  },
  { what: "an attempt ran that nobody granted", lines: [...ran, ["start", 7]], says: /nobody granted it \(K2\)/ },
  { what: "a result without an attempt that ended", lines: [["stopped", 1]], says: /no attempt of it ran to its end/ },
  { what: "one claim ran twice", lines: [...ran, ["start", 1]], says: /begun twice under one claim/ },
];

for (const { what, events = good, lines = ran, says } of wrong)
  test(`detected: ${what}`, () => match(judge(events, lines).violations.join("\n"), says));
