/**
 * What executors wrote down of their attempts while they ran: one line a happening, appended at once, so that it is
 * there whatever becomes of the process. Read by the checker, which trusts nothing that the program says of itself.
 */
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Happening = {
  /** "acknowledged": the commit of the result was answered with yes. */
  readonly what: "start" | "end" | "stopped" | "acknowledged";
  readonly task: string;
  readonly token: number;
  readonly pid: number;
  readonly atMs: number;
};

export class AttemptLog {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.ndjson`);
  }

  add(what: Happening["what"], { taskId, token }: { readonly taskId: string; readonly token: number }): void {
    const happening: Happening = { what, task: taskId, token, pid: process.pid, atMs: Date.now() };
    appendFileSync(this.#file, `${JSON.stringify(happening)}\n`);
  }
}

export type Attempt = {
  readonly task: string;
  readonly token: number;
  readonly pid: number;
  readonly startedAtMs: number;
  endedAtMs?: number;
  stoppedAtMs?: number;
  isAcknowledged: boolean;
};

export function readAttempts(folder: string): readonly Attempt[] {
  const attempts = new Map<string, Attempt>();
  for (const name of readdirSync(folder)) {
    // A process that was killed in the middle of a line leaves it without an end.
    const lines = readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);
    for (const line of lines) take(JSON.parse(line) as Happening, attempts);
  }
  return [...attempts.values()];
}

function take({ what, task, token, pid, atMs }: Happening, attempts: Map<string, Attempt>): void {
  const key = `${task}#${token}`;
  if (what === "start") {
    if (attempts.has(key)) throw new Error(`${key} was started twice under one token, by pid ${pid} too`);
    attempts.set(key, { task, token, pid, startedAtMs: atMs, isAcknowledged: false });
    return;
  }
  const attempt = attempts.get(key);
  if (!attempt) throw new Error(`${key}: "${what}" without a start`);
  if (what === "end") attempt.endedAtMs = atMs;
  else if (what === "stopped") attempt.stoppedAtMs = atMs;
  else attempt.isAcknowledged = true;
}
