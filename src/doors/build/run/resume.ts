/**
 * Actions that were running when this node's process died, and still run: what is kept of them, and how to continue.
 */
import type { Granted } from "#shard/client/executor.ts";
import { keyOf } from "#worker/holding.ts";
import type { Resume } from "#worker/runner.ts";
import type { Attempt } from "#worker/sandbox/attempt.ts";
import type { FoundRun, Sandbox } from "#worker/sandbox/sandbox.ts";
import type { Running } from "#worker/process/spawner.ts";
import type { Times } from "./times.ts";

type Kept = { readonly task: Granted; readonly soFar: Times["soFar"] };

/** Kept beside the running command. */
export const keptText = (task: Granted, times: Times): string =>
  JSON.stringify({ task, soFar: times.soFar } satisfies Kept);

/** Undefined if another version wrote it. */
function readKept(text: string): Kept | undefined {
  try {
    const kept = JSON.parse(text) as Partial<Kept>;
    return typeof kept.task?.taskId === "string" && typeof kept.task.token === "number" ? (kept as Kept) : undefined;
  } catch {
    return undefined;
  }
}

export type Resumed = { readonly attempt: Attempt; readonly running: Running; readonly soFar: Times["soFar"] };

export class Resumable {
  readonly #sandbox: Sandbox;
  readonly #found = new Map<string, { readonly run: FoundRun; readonly kept: Kept }>();

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
    for (const run of sandbox.found) {
      const kept = readKept(run.note);
      if (kept) this.#found.set(keyOf(kept.task), { run, kept });
    }
  }

  /** What the sandbox must keep. */
  get runs(): readonly FoundRun[] {
    return [...this.#found.values()].map(({ run }) => run);
  }

  get resumes(): readonly Resume[] {
    return [...this.#found].map(([key, { kept }]) => ({ granted: kept.task, drop: () => this.#drop(key) }));
  }

  knows(task: Granted): boolean {
    return this.#found.has(keyOf(task));
  }

  /** The running attempt, if it is one of these; from then on the caller owns it. */
  take(task: Granted): Resumed | undefined {
    const found = this.#found.get(keyOf(task));
    const attempt = found && this.#sandbox.adopt(found.run);
    if (!attempt) return undefined;
    this.#found.delete(keyOf(task));
    return { attempt, running: found.run.running, soFar: found.kept.soFar };
  }

  #drop(key: string): void {
    const { run } = this.#found.get(key) ?? {};
    this.#found.delete(key);
    if (run) this.#sandbox.drop(run);
  }
}
