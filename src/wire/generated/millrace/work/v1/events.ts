// Generated from proto/millrace/work/v1/events.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { sortedEntries } from "#wire/writer.ts";

/** What to read, and from where. */
export type ReadEventsRequest = {
  /** Whose events; left out: the caller's tenant, or those of all tenants for operators of all. */
  readonly tenant: string;
  /** Where to go on; left out: see `from_oldest`. */
  readonly cursor: string;
  /** Without a cursor: begin with the oldest event that is kept, not with the next one. */
  readonly fromOldest: boolean;
  /** Only of these kinds: job, stage, task, step. None: all. */
  readonly kinds: readonly string[];
  /** Only of these doors. None: all. */
  readonly doors: readonly string[];
  /** Only of jobs with all of these tags, each as name=value. */
  readonly tags: readonly string[];
  /** Only of this job. */
  readonly job: string;
};

export const ReadEventsRequest: Message<ReadEventsRequest> = {
  typeName: "millrace.work.v1.ReadEventsRequest",
  write(message, to) {
    if (message.tenant !== "") {
      to.string(10, message.tenant);
    }
    if (message.cursor !== "") {
      to.string(18, message.cursor);
    }
    if (message.fromOldest) {
      to.bool(24, message.fromOldest);
    }
    for (const one of message.kinds) {
      to.string(34, one);
    }
    for (const one of message.doors) {
      to.string(42, one);
    }
    for (const one of message.tags) {
      to.string(50, one);
    }
    if (message.job !== "") {
      to.string(58, message.job);
    }
  },
  read(from, end, before) {
    let tenant = before === undefined ? "" : before.tenant;
    let cursor = before === undefined ? "" : before.cursor;
    let fromOldest = before === undefined ? false : before.fromOldest;
    const kinds: string[] = before === undefined ? [] : (before.kinds as string[]);
    const doors: string[] = before === undefined ? [] : (before.doors as string[]);
    const tags: string[] = before === undefined ? [] : (before.tags as string[]);
    let job = before === undefined ? "" : before.job;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          tenant = from.string();
          break;
        }
        case 18: {
          cursor = from.string();
          break;
        }
        case 24: {
          fromOldest = from.bool();
          break;
        }
        case 34: {
          from.count();
          kinds.push(from.string());
          break;
        }
        case 42: {
          from.count();
          doors.push(from.string());
          break;
        }
        case 50: {
          from.count();
          tags.push(from.string());
          break;
        }
        case 58: {
          job = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { tenant, cursor, fromOldest, kinds, doors, tags, job };
  },
};

/** Some items, and where to go on. */
export type ReadEventsResponse = {
  /** In order, for each shard. */
  readonly items: readonly EventItem[];
  /** Goes on right after these items. */
  readonly cursor: string;
};

export const ReadEventsResponse: Message<ReadEventsResponse> = {
  typeName: "millrace.work.v1.ReadEventsResponse",
  write(message, to) {
    for (const one of message.items) {
      const start = to.open(10);
      EventItem.write(one, to);
      to.close(start);
    }
    if (message.cursor !== "") {
      to.string(18, message.cursor);
    }
  },
  read(from, end, before) {
    const items: EventItem[] = before === undefined ? [] : (before.items as EventItem[]);
    let cursor = before === undefined ? "" : before.cursor;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          items.push(EventItem.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          cursor = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { items, cursor };
  },
};

/** One transition. The fields are those of docs/reference/events.md. */
export type EventItem = {
  /** The same transition always has the same id. */
  readonly id: string;
  /** job, stage, task or step. */
  readonly kind: string;
  /** What happened to it. */
  readonly change: string;
  /** When, in milliseconds since 1970. */
  readonly atMs: number;
  /** Whose job. */
  readonly tenant: string;
  /** The job. */
  readonly job: string;
  /** The door that it came through. */
  readonly door: string;
  /** Its name. */
  readonly name: string;
  /** Its tags. */
  readonly tags: ReadonlyMap<string, string>;
  /** Its number in its series; 0: none. */
  readonly number: number;
  /** After the change. */
  readonly phase: string;
  /** Why. */
  readonly reason: string;
  /** The stage; for tasks and steps, theirs. */
  readonly stage?: EventStage | undefined;
  /** The task; for steps, theirs. */
  readonly task?: EventTask | undefined;
  /** The step. */
  readonly step?: EventStep | undefined;
};

export const EventItem: Message<EventItem> = {
  typeName: "millrace.work.v1.EventItem",
  write(message, to) {
    if (message.id !== "") {
      to.string(10, message.id);
    }
    if (message.kind !== "") {
      to.string(18, message.kind);
    }
    if (message.change !== "") {
      to.string(26, message.change);
    }
    if (message.atMs !== 0) {
      to.int64(32, message.atMs);
    }
    if (message.tenant !== "") {
      to.string(42, message.tenant);
    }
    if (message.job !== "") {
      to.string(50, message.job);
    }
    if (message.door !== "") {
      to.string(58, message.door);
    }
    if (message.name !== "") {
      to.string(66, message.name);
    }
    if (message.tags.size > 0) {
      for (const [key, one] of sortedEntries(message.tags)) {
        const entry = to.open(74);
        to.string(10, key);
        to.string(18, one);
        to.close(entry);
      }
    }
    if (message.number !== 0) {
      to.int64(80, message.number);
    }
    if (message.phase !== "") {
      to.string(90, message.phase);
    }
    if (message.reason !== "") {
      to.string(98, message.reason);
    }
    if (message.stage !== undefined) {
      const start = to.open(106);
      EventStage.write(message.stage, to);
      to.close(start);
    }
    if (message.task !== undefined) {
      const start = to.open(114);
      EventTask.write(message.task, to);
      to.close(start);
    }
    if (message.step !== undefined) {
      const start = to.open(122);
      EventStep.write(message.step, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let id = before === undefined ? "" : before.id;
    let kind = before === undefined ? "" : before.kind;
    let change = before === undefined ? "" : before.change;
    let atMs = before === undefined ? 0 : before.atMs;
    let tenant = before === undefined ? "" : before.tenant;
    let job = before === undefined ? "" : before.job;
    let door = before === undefined ? "" : before.door;
    let name = before === undefined ? "" : before.name;
    const tags: Map<string, string> = before === undefined ? new Map<string, string>() : (before.tags as Map<string, string>);
    let number = before === undefined ? 0 : before.number;
    let phase = before === undefined ? "" : before.phase;
    let reason = before === undefined ? "" : before.reason;
    let stage = before?.stage;
    let task = before?.task;
    let step = before?.step;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          id = from.string();
          break;
        }
        case 18: {
          kind = from.string();
          break;
        }
        case 26: {
          change = from.string();
          break;
        }
        case 32: {
          atMs = from.int64();
          break;
        }
        case 42: {
          tenant = from.string();
          break;
        }
        case 50: {
          job = from.string();
          break;
        }
        case 58: {
          door = from.string();
          break;
        }
        case 66: {
          name = from.string();
          break;
        }
        case 74: {
          const stop = from.enter();
          let key = "";
          let value = "";
          while (from.pos < stop) {
            const inner = from.tag();
            if (inner === 10) key = from.string();
            else if (inner === 18) value = from.string();
            else from.skip(inner);
          }
          from.leave(stop);
          tags.set(key, value);
          break;
        }
        case 80: {
          number = from.int64();
          break;
        }
        case 90: {
          phase = from.string();
          break;
        }
        case 98: {
          reason = from.string();
          break;
        }
        case 106: {
          const stop = from.enter();
          stage = EventStage.read(from, stop, stage);
          from.leave(stop);
          break;
        }
        case 114: {
          const stop = from.enter();
          task = EventTask.read(from, stop, task);
          from.leave(stop);
          break;
        }
        case 122: {
          const stop = from.enter();
          step = EventStep.read(from, stop, step);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { id, kind, change, atMs, tenant, job, door, name, tags, number, phase, reason, stage, task, step };
  },
};

/** A stage as it is after the change. */
export type EventStage = {
  /** Its place in the job, from 0. */
  readonly index: number;
  /** Its name. */
  readonly name: string;
  /** Grows when lost results are made again. */
  readonly generation: number;
  /** How many tasks it has. */
  readonly tasks: number;
  /** How many of them have succeeded. */
  readonly done: number;
  /** How many of them have failed. */
  readonly failed: number;
  /** The signal that arrived. */
  readonly signal: string;
};

export const EventStage: Message<EventStage> = {
  typeName: "millrace.work.v1.EventStage",
  write(message, to) {
    if (message.index !== 0) {
      to.int32(8, message.index);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
    if (message.tasks !== 0) {
      to.int64(32, message.tasks);
    }
    if (message.done !== 0) {
      to.int64(40, message.done);
    }
    if (message.failed !== 0) {
      to.int64(48, message.failed);
    }
    if (message.signal !== "") {
      to.string(58, message.signal);
    }
  },
  read(from, end, before) {
    let index = before === undefined ? 0 : before.index;
    let name = before === undefined ? "" : before.name;
    let generation = before === undefined ? 0 : before.generation;
    let tasks = before === undefined ? 0 : before.tasks;
    let done = before === undefined ? 0 : before.done;
    let failed = before === undefined ? 0 : before.failed;
    let signal = before === undefined ? "" : before.signal;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          index = from.int32();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        case 32: {
          tasks = from.int64();
          break;
        }
        case 40: {
          done = from.int64();
          break;
        }
        case 48: {
          failed = from.int64();
          break;
        }
        case 58: {
          signal = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { index, name, generation, tasks, done, failed, signal };
  },
};

/** A task as it is after the change. */
export type EventTask = {
  /** Such as t0-1. */
  readonly id: string;
  /** Its name within the stage. */
  readonly key: string;
  /** Grows when its lost result is made again. */
  readonly generation: number;
  /** It decides what the stage's tasks are. */
  readonly planning: boolean;
  /** The claim's token; 0: none. */
  readonly attempt: number;
  /** Who runs it. */
  readonly executor: string;
  /** How the attempt ended. */
  readonly outcome: string;
  /** What becomes of the task. */
  readonly next: string;
};

export const EventTask: Message<EventTask> = {
  typeName: "millrace.work.v1.EventTask",
  write(message, to) {
    if (message.id !== "") {
      to.string(10, message.id);
    }
    if (message.key !== "") {
      to.string(18, message.key);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
    if (message.planning) {
      to.bool(32, message.planning);
    }
    if (message.attempt !== 0) {
      to.int64(40, message.attempt);
    }
    if (message.executor !== "") {
      to.string(50, message.executor);
    }
    if (message.outcome !== "") {
      to.string(58, message.outcome);
    }
    if (message.next !== "") {
      to.string(66, message.next);
    }
  },
  read(from, end, before) {
    let id = before === undefined ? "" : before.id;
    let key = before === undefined ? "" : before.key;
    let generation = before === undefined ? 0 : before.generation;
    let planning = before === undefined ? false : before.planning;
    let attempt = before === undefined ? 0 : before.attempt;
    let executor = before === undefined ? "" : before.executor;
    let outcome = before === undefined ? "" : before.outcome;
    let next = before === undefined ? "" : before.next;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          id = from.string();
          break;
        }
        case 18: {
          key = from.string();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        case 32: {
          planning = from.bool();
          break;
        }
        case 40: {
          attempt = from.int64();
          break;
        }
        case 50: {
          executor = from.string();
          break;
        }
        case 58: {
          outcome = from.string();
          break;
        }
        case 66: {
          next = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { id, key, generation, planning, attempt, executor, outcome, next };
  },
};

/** A step of a task. */
export type EventStep = {
  /** Its place, as the executor counts. */
  readonly index: number;
  /** Its name. */
  readonly name: string;
};

export const EventStep: Message<EventStep> = {
  typeName: "millrace.work.v1.EventStep",
  write(message, to) {
    if (message.index !== 0) {
      to.int32(8, message.index);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
  },
  read(from, end, before) {
    let index = before === undefined ? 0 : before.index;
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          index = from.int32();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { index, name };
  },
};

/** For programs that follow what happens. */
export const Events = {
  typeName: "millrace.work.v1.Events",
  methods: {
    /**
     * Reads the feed until the caller ends the call. A reader that is too slow gets RESOURCE_EXHAUSTED: it goes on at
     * its last cursor.
     */
    read: {
      name: "Read",
      path: "/millrace.work.v1.Events/Read",
      request: ReadEventsRequest,
      response: ReadEventsResponse,
      streams: "server",
    },
  },
} as const satisfies Service;
