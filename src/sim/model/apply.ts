/** Applies an event of a shard's log to its model. */
import type { Event } from "#kernel/model/event.ts";
import { jobFolds } from "./jobs.ts";
import { stageFolds } from "./stages.ts";
import { taskFolds } from "./tasks.ts";
import type { Folds, ShardModel } from "./model.ts";

export function apply(model: ShardModel, event: Event): void {
  if ("at" in event) model.atMs = Math.max(model.atMs, event.at);
  const fold = folds[event.kind] as (model: ShardModel, event: Event) => void;
  fold(model, event);
}

const nothing = () => {};

const folds: Folds = {
  ...jobFolds,
  ...stageFolds,
  ...taskFolds,
  "took-over": nothing,
  "tenant-set": (model, event) => void model.tenants.set(event.tenant, event),
  "quota-lent": nothing,
  "quota-taken": nothing,
  reported: nothing,
  "executor-drained": nothing,
  "executor-resumed": nothing,
};
