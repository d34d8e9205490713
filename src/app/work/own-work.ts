/** A node runs a kind of work only in jobs of the door that the kind belongs to, whatever an old log says. */
import { assert } from "#base/assert.ts";
import type { Planner, Planners, Runner, Runners } from "#worker/runner.ts";
import type { KindTable } from "#shard/door-kinds.ts";

export const ownRunners = (runners: Runners, kinds: KindTable): Runners =>
  Object.fromEntries(Object.entries(runners).map(([kind, runner]) => [kind, ownRunner(kind, runner, kinds)]));

export const ownPlanners = (planners: Planners, kinds: KindTable): Planners =>
  Object.fromEntries(Object.entries(planners).map(([kind, planner]) => [kind, ownPlanner(kind, planner, kinds)]));

function ownRunner(kind: string, runner: Runner, kinds: KindTable): Runner {
  const door = doorOf(kind, kinds);
  const own: Runner = async (context) => {
    if (context.task.door === door) return await runner(context);
    return { kind: "failed", reason: "user-failure", message: notOf(kind, door) };
  };
  return runner.prepares === undefined ? own : Object.assign(own, { prepares: runner.prepares });
}

function ownPlanner(kind: string, planner: Planner, kinds: KindTable): Planner {
  const door = doorOf(kind, kinds);
  return (inputs, context) =>
    context.task.door === door ? planner(inputs, context) : { kind: "fail", reason: notOf(kind, door) };
}

function doorOf(kind: string, kinds: KindTable): string {
  const door = kinds.doorOf(kind);
  assert(door !== undefined, `${kind} is run here and belongs to no door: list it in the door's kinds`);
  return door;
}

const notOf = (kind: string, door: string): string => `${kind} is run in jobs of the door ${door} only`;
