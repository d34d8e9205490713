import type { Command } from "#kernel/model/command.ts";
import type { Result, StageSpec, TaskSet } from "#kernel/model/model.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { listedIn, setsOf } from "#kernel/model/task-set.ts";

const base = 200;
const perTask = 64;

export function weighRequest(request: ShardRequest): number {
  if (request.kind === "command") return weigh(request.command);
  if (request.kind !== "commands" || !Array.isArray(request.commands)) return 0;
  return request.commands.reduce(addCommand, 0);
}

const addText = (sum: number, text: string): number => sum + perTask + text.length;

const addCommand = (sum: number, command: Command): number => sum + weigh(command);

/** Roughly how many bytes the command takes up in memory and log; cheap rather than exact. */
export function weigh(command: Command): number {
  try {
    switch (command.kind) {
      case "submit":
        return command.stages.reduce(addStage, base + command.spec.length + (command.reuse?.length ?? 0) * base);
      case "record-plan":
        return command.plan.kind === "tasks" ? setsOf(command.plan).reduce(addSet, base) : base;
      case "commit":
        return base + weighResult(command.result);
      case "signal":
        return base + command.signal.payload.length;
      case "fail":
        return base + command.message.length + (command.result ? weighResult(command.result) : 0);
      case "checkpoint":
        return base + weighResult(command.checkpoint);
      case "release":
        return base + (command.checkpoint ? weighResult(command.checkpoint) : 0);
      case "report":
        return base + command.steps.length * perTask;
      case "renew":
        return base + command.claims.length * perTask;
      case "reserve":
        return [...command.offers, ...command.prefer].reduce(addText, base);
      default:
        return base;
    }
  } catch {
    // Malformed: the kernel refuses it.
    return base;
  }
}

const weighResult = ({ payload, digests, publish }: Result): number =>
  payload.length + digests.length * perTask + (publish?.length ?? 0);

const addStage = (sum: number, { tasks }: StageSpec): number => sum + base + (tasks ? weighTasks(tasks) : 0);

const addSet = (sum: number, set: TaskSet): number => sum + base + weighTasks(set);

function weighTasks(set: TaskSet): number {
  let bytes = set.array ? perTask + set.array.spec.length : 0;
  for (const { key, spec } of listedIn(set)) bytes += perTask + key.length + spec.length;
  return bytes;
}
