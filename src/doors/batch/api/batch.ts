/** `import { dataset, col, sql } from "millrace/batch"`: queries in TypeScript, and the jobs that they become. */
export { dataset, Dataset, Output } from "./dataset.ts";
export type { AnyRow, Grouped, ReadOptions, WriteOptions } from "./dataset.ts";
export { avg, call, col, count, countDistinct, Expression, lit, max, min, Ordering } from "./expression.ts";
export { rowNumber, sql, sum } from "./expression.ts";
export type { Literal, Operand, Window } from "./expression.ts";
export type { MapOptions } from "./map-batches.ts";
export { attach, Job, JobError } from "./job.ts";
export type { JobStatus, RunOptions, StageStatus, Written } from "./job.ts";
export type { ServerOptions } from "./connect.ts";
