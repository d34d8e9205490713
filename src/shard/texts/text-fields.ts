/**
 * Where long texts occur in commands and answers. Each function returns the same object if no text in it was changed,
 * and ignores malformed parts: the kernel refuses those.
 */
import type { Command, CommandOf } from "#kernel/model/command.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Grant, HeldClaim, Reuse, Signal, StageSpec, TaskPlan, TaskSet } from "#kernel/model/model.ts";
import type { Answer, JobView, PlanInputs, Query } from "#kernel/read/query.ts";
import type { WatchMessage } from "#shard/transport/protocol.ts";

export type MapText = (text: string) => string;
export type TextCommand = CommandOf<"submit" | "record-plan" | "signal">;

export const hasTexts = (command: Command): command is TextCommand =>
  command.kind === "submit" || command.kind === "record-plan" || command.kind === "signal";

export function mapCommand(command: TextCommand, map: MapText): TextCommand {
  switch (command.kind) {
    case "submit":
      return mapWork(command, map);
    case "record-plan": {
      if (command.plan.kind !== "tasks") return command;
      const plan = mapSets(command.plan, map);
      return plan === command.plan ? command : { ...command, plan };
    }
    case "signal": {
      const signal = mapSignal(command.signal, map);
      return signal === command.signal ? command : { ...command, signal };
    }
  }
}

export function mapEvent(event: Event, map: MapText): Event {
  switch (event.kind) {
    case "job-submitted":
      return mapWork(event, map);
    case "stage-planned":
      return mapSets(event, map);
    case "signalled": {
      const payload = map(event.payload);
      return payload === event.payload ? event : { ...event, payload };
    }
    default:
      return event;
  }
}

export const mapEvents = (events: readonly Event[], map: MapText): readonly Event[] =>
  mapList(events, (event) => mapEvent(event, map));

export const mapGrants = (grants: readonly Grant[], map: MapText): readonly Grant[] =>
  mapList(grants, (grant) => withSpec(grant, map));

export function mapAnswer(query: Query, answer: Answer, map: MapText): Answer {
  if (query.kind === "job") return mapJob(answer as JobView, map);
  if (query.kind !== "plan-inputs") return answer;
  const inputs = withSpec(answer as PlanInputs, map);
  const signals = mapList(inputs.signals, (signal) => mapSignal(signal, map));
  return signals === inputs.signals ? inputs : { ...inputs, signals };
}

function mapJob(job: JobView, map: MapText): JobView {
  const view = withSpec(job, map);
  const stages = mapList(view.stages, (stage) => {
    const signals = stage.signals && mapList(stage.signals, (signal) => mapSignal(signal, map));
    return signals === stage.signals ? stage : { ...stage, signals };
  });
  return stages === view.stages ? view : { ...view, stages };
}

export const mapHeld = (held: readonly HeldClaim[], map: MapText): readonly HeldClaim[] =>
  mapList(held, (claim) => {
    const signals = claim.signals && mapList(claim.signals, (signal) => mapSignal(signal, map));
    return signals === claim.signals ? claim : { ...claim, signals };
  });

export function mapMessage(message: WatchMessage, map: MapText): WatchMessage {
  if (message.kind === "snapshot") {
    const view = mapJob(message.view, map);
    return view === message.view ? message : { ...message, view };
  }
  if (message.kind !== "events") return message;
  const events = mapEvents(message.events, map);
  return events === message.events ? message : { ...message, events };
}

type Work = { readonly spec: string; readonly stages: readonly StageSpec[]; readonly reuse?: readonly Reuse[] };

function mapWork<T extends Work>(work: T, map: MapText): T {
  const spec = map(work.spec);
  const stages = mapList(work.stages, (stage) => mapStage(stage, map));
  const reuse = work.reuse && mapList(work.reuse, (one) => withSpec(one, map));
  if (spec === work.spec && stages === work.stages && reuse === work.reuse) return work;
  return { ...work, spec, stages, ...(reuse && { reuse }) };
}

function mapStage(stage: StageSpec, map: MapText): StageSpec {
  if (!stage.tasks) return stage;
  const tasks = mapSet(stage.tasks, map);
  return tasks === stage.tasks ? stage : { ...stage, tasks };
}

function mapSets<T extends Sets>(planned: T, map: MapText): T {
  const set = planned.set && mapSet(planned.set, map);
  const sets = planned.sets && mapList(planned.sets, (one) => mapSet(one, map));
  if (set === planned.set && sets === planned.sets) return planned;
  return { ...planned, ...(set && { set }), ...(sets && { sets }) };
}

type Sets = { readonly set?: TaskSet | undefined; readonly sets?: readonly TaskSet[] | undefined };

function mapSet(set: TaskSet, map: MapText): TaskSet {
  if (set.array) {
    const array = withSpec(set.array, map);
    return array === set.array ? set : { ...set, array };
  }
  const tasks = mapList(set.tasks, (task: TaskPlan) => withSpec(task, map));
  return tasks === set.tasks ? set : { ...set, tasks };
}

function mapSignal<T extends Signal>(signal: T, map: MapText): T {
  const payload = map(signal.payload);
  return payload === signal.payload ? signal : { ...signal, payload };
}

function withSpec<T extends { readonly spec: string }>(thing: T, map: MapText): T {
  const spec = map(thing.spec);
  return spec === thing.spec ? thing : { ...thing, spec };
}

function mapList<T>(list: readonly T[], map: (item: T) => T): readonly T[] {
  let changed: T[] | undefined;
  for (let i = 0; i < list.length; i += 1) {
    const item = list[i] as T;
    const mapped = map(item);
    if (mapped !== item) (changed ??= [...list])[i] = mapped;
  }
  return changed ?? list;
}
