/**
 * A caller that is narrowed to its tenant gets the same answer about another tenant's work as about work that does not
 * exist.
 */
import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Command, CommandKind } from "#kernel/model/command.ts";
import type { Query } from "#kernel/read/query.ts";
import { Transcript } from "#kernel/testing/transcript.ts";

/** Tenant acme has one of each: a stage being planned, running, committed and released tasks, a subscriber. */
function busy(): Transcript {
  const t = new Transcript();
  t.say("submit j merge=m by=ann : a[x,y,z] b[?]");
  t.say("reserve ada n=9 start");
  t.say("commit ada x");
  t.say("release ada z");
  return t;
}

const job = 1;
const absent = 4_000;
type Named = { readonly job: number; readonly task: number; readonly token: number; readonly executor: string };
type Row = (named: Named) => Omit<Command, "tenant">;
const result = { payload: "done", digests: [] };
const evidence = { digests: [], pinnedForMs: 1_000 };

/** Every command that names a job or a task of a tenant; `undefined` for those that name none. */
const commands: Readonly<Record<CommandKind, Row | undefined>> = {
  leave: (named) => ({ kind: "leave", job: named.job, subscriber: "ann" }),
  cancel: (named) => ({ kind: "cancel", job: named.job, reason: "mine now" }),
  signal: (named) => ({ kind: "signal", job: named.job, stage: 1, signal: { id: "1", name: "go", payload: "" } }),
  start: ({ executor, task, token }) => ({ kind: "start", executor, task, token }),
  report: ({ executor, task, token }) => ({ kind: "report", executor, task, token, steps: [] }),
  commit: ({ executor, task, token }) => ({ kind: "commit", executor, task, token, result, evidence }),
  "record-plan": ({ executor, task, token }) => {
    const plan = { kind: "skip", reason: "" } as const;
    return { kind: "record-plan", executor, task, token, plan };
  },
  fail: ({ executor, task, token }) => {
    return { kind: "fail", executor, task, token, reason: "user-failure", message: "" };
  },
  checkpoint: ({ executor, task, token }) => ({
    kind: "checkpoint",
    executor,
    task,
    token,
    checkpoint: { payload: "", digests: [] },
    evidence: { digests: [], pinnedForMs: 1 },
  }),
  release: ({ executor, task, token }) => ({ kind: "release", executor, task, token }),
  invalidate: ({ task }) => ({ kind: "invalidate", task, generation: 1, reason: "lost" }),
  submit: undefined, // names its own tenant
  reserve: undefined, // grants only work of its tenant
  renew: undefined, // names an executor; executors of one tenant have names of their own
  drain: undefined,
  resume: undefined,
  "set-tenant": undefined,
  "lend-quota": undefined,
  "take-quota": undefined,
  published: undefined,
  "record-manifest": undefined,
  notified: undefined,
  forget: undefined,
  "take-over": undefined,
  tick: undefined,
};

const queries: Readonly<Record<Query["kind"], ((named: Named) => Omit<Query, "tenant">) | undefined>> = {
  job: (named) => ({ kind: "job", job: named.job }),
  task: ({ task }) => ({ kind: "task", task }),
  why: (named) => ({ kind: "why", job: named.job }),
  "plan-inputs": ({ task, token }) => ({ kind: "plan-inputs", task, token, limit: 10 }),
  jobs: undefined,
  count: undefined,
  executors: undefined,
  stats: undefined,
};

/** Without the numbers that the caller itself gave. */
const told = (outcome: unknown, named: Named): string =>
  JSON.stringify(outcome, (field, value: unknown) =>
    (field === "job" && value === named.job) || (field === "task" && value === named.task) ? "the caller's" : value,
  );

describe("another tenant's work", () => {
  /** Every task of the tenant, with its token, as named by its executor and by another one. */
  function* everything(): Generator<{ readonly t: Transcript; readonly foreign: Named; readonly unknown: Named }> {
    for (const { no, claim, last, resultToken } of busy().state.tasks.values())
      for (const executor of ["ada", "eve"]) {
        const foreign = { job, task: no, token: claim?.token ?? last?.token ?? resultToken ?? 1, executor };
        yield { t: busy(), foreign, unknown: { ...foreign, job: absent, task: absent } };
      }
  }

  for (const [kind, row] of Object.entries(commands))
    if (row)
      test(`${kind} is refused as if there were none, and changes nothing`, () => {
        for (const { t, foreign, unknown } of everything()) {
          const { length } = t.events;
          const refused = t.do({ ...row(foreign), tenant: "other" } as Command);
          equal(refused.ok, false, JSON.stringify(foreign));
          deepEqual(told(refused, foreign), told(t.do({ ...row(unknown), tenant: "other" } as Command), unknown));
          equal(t.events.length, length);
        }
      });

  for (const [kind, row] of Object.entries(queries))
    if (row)
      test(`the query ${kind} is answered as if there were none`, () => {
        for (const { t, foreign, unknown } of everything()) {
          const refused = t.ask({ ...row(foreign), tenant: "other" } as Query);
          deepEqual(told(refused, foreign), told(t.ask({ ...row(unknown), tenant: "other" } as Query), unknown));
        }
      });

  test("an operator of all tenants sees every executor, a tenant only those that serve it", () => {
    const t = new Transcript();
    t.say("reserve shared");
    t.say("reserve spy tenant=other");
    t.say("reserve own tenant=acme");
    const listed = (tenant?: string): readonly string[] => {
      const query = { kind: "executors", ...(tenant !== undefined && { tenant }) } as const;
      return (t.ask(query) as { executors: readonly { executor: string }[] }).executors.map((one) => one.executor);
    };
    deepEqual(listed(), ["shared", "spy", "own"]);
    deepEqual(listed("acme"), ["shared", "own"]);
  });

  test("why names no executor of another tenant, unless the caller is of all tenants", () => {
    const t = new Transcript();
    t.say("submit j : a[x];on=gpu");
    t.say("reserve spy offers=gpu tenant=other");
    const because = (tenant?: string): unknown => {
      const { why } = t.ask({ kind: "why", job, ...(tenant !== undefined && { tenant }) }) as {
        why: readonly { because: unknown }[];
      };
      return why[0]?.because;
    };
    deepEqual(because(), { kind: "no-executor", nearest: "spy", missing: ["tenant=acme"] });
    deepEqual(because("acme"), { kind: "no-executor", nearest: undefined, missing: ["gpu"] });
  });
});
