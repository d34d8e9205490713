import type { Job, Stage, Task } from "./entities.ts";
/** A snapshot in the making. */
export type Capture = { keep(thing: Task | Stage | Job): void };
