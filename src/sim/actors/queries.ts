/** The queries of clients, about jobs that exist and some that do not. */
import type { Query } from "#kernel/read/query.ts";

export const queriesOf = (job: number): readonly Query[] => [
  { kind: "job", job },
  { kind: "job", job },
  { kind: "job", job: job + 1_000 },
  { kind: "jobs", limit: 10 },
  { kind: "why", job },
  { kind: "why", job },
  { kind: "why", job },
  { kind: "task", task: job },
  { kind: "stats" },
  { kind: "executors" },
  { kind: "job", job, tenant: "tenant-0", tasksMax: 1 },
  { kind: "job", job, tenant: "nobody" },
  { kind: "jobs", limit: 2, before: job, door: "sim", tenant: "tenant-0" },
  { kind: "jobs", limit: 1, door: "elsewhere" },
  { kind: "task", task: job, tenant: "nobody" },
  { kind: "plan-inputs", task: job, token: 1, limit: 1 },
  { kind: "plan-inputs", task: job + 1_000, token: 1, limit: 1 },
  { kind: "nothing" } as unknown as Query,
];
