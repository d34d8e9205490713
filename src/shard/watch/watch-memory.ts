/** Limits on unread messages, per watcher and for all watchers of a node together. */
import type { Event } from "#kernel/model/event.ts";
import type { TaskSet } from "#kernel/model/model.ts";
import { setsOf } from "#kernel/model/task-set.ts";

/** Shared by all shards of a node. */
export class WatchMemory {
  readonly bytesMax: number;
  bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= this.bytesMax;
  }
}

const eventBytes = 200;

/** Roughly the memory that the events hold once only the watcher refers to them. */
export const weighEvents = (events: readonly Event[]): number => events.reduce((sum, event) => sum + weigh(event), 0);

function weigh(event: Event): number {
  switch (event.kind) {
    case "job-submitted":
      return event.stages.reduce((sum, { tasks }) => sum + eventBytes + weighTasks(tasks), event.spec.length);
    case "stage-planned":
      return setsOf(event).reduce((sum, set) => sum + weighTasks(set), eventBytes);
    case "committed":
    case "reused":
      return eventBytes + event.result.payload.length + 100 * event.result.digests.length;
    case "signalled":
      return eventBytes + event.payload.length;
    case "reported":
      return eventBytes * event.steps.length;
    case "attempt-ended":
      return (
        eventBytes +
        event.message.length +
        (event.result?.payload.length ?? 0) +
        100 * (event.result?.digests.length ?? 0)
      );
    case "checkpointed":
      return eventBytes + event.checkpoint.payload.length + 100 * event.checkpoint.digests.length;
    default:
      return eventBytes;
  }
}

const weighTasks = (set: TaskSet | undefined): number =>
  (set?.tasks ?? []).reduce((sum, { key, spec }) => sum + eventBytes + key.length + spec.length, 0);
