/** Which array a task's number belongs to, for those who follow a job: its million tasks are not named one by one. */
import type { EventOf } from "#kernel/model/event.ts";
import { setsOf, sizeOf } from "#kernel/model/task-set.ts";
import type { ArrayView, StageView } from "./query.ts";

export type ArrayFound = { readonly stage: number; readonly key: string; readonly array: FollowedArray };
export type FollowedArray = ArrayView & { readonly stage: number; done: number };

export class ArrayNames {
  #arrays: FollowedArray[] = [];

  /** Forgets all names: the next view of the job brings them again. */
  see(stages: readonly StageView[]): void {
    this.#arrays = stages.flatMap(({ stage, arrays = [], done }) =>
      arrays.map((array) => ({ ...array, stage, done: arrays.length === 1 ? Math.min(done, array.count) : 0 })),
    );
  }

  planned(event: EventOf<"stage-planned">): void {
    let task = event.firstTask;
    for (const set of setsOf(event)) {
      if (set.array) {
        const { count, first = 0 } = set.array;
        this.#arrays.push({ task, count, first, stage: event.stage, done: 0 });
      }
      task += sizeOf(set);
    }
  }

  find(task: number): ArrayFound | undefined {
    const array = this.#arrays.find((one) => task >= one.task && task < one.task + one.count);
    return array && { stage: array.stage, key: String(array.first + task - array.task), array };
  }
}
