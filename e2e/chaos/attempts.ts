/**
 * What executors recorded of their attempts while they ran: one line per event, appended at once, so that it exists
 * whatever happens to the process. Read by the checker, which trusts nothing that the program says of itself.
 */
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Happening = {
  /** "acknowledged": the commit of the result was answered with success. */
  readonly what: "start" | "end" | "stopped" | "acknowledged";
  readonly task: string;
  /** Its token as "#7"; a command does not get its token, only the attempt's number: "@1". */
  readonly attempt: string;
  readonly pid: number;
};

type Claim = { readonly taskId: string; readonly token: number };

export class AttemptLog {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.ndjson`);
  }

  add(what: Happening["what"], { taskId, token }: Claim): void {
    const happening: Happening = { what, task: taskId, attempt: `#${token}`, pid: process.pid };
    appendFileSync(this.#file, `${JSON.stringify(happening)}\n`);
  }
}

/** The same for a shell, as a shell line. */
export const shellHappening = (what: Happening["what"], folder: string): string => {
  const line = `{"what":"${what}","task":"%s","attempt":"@%s","pid":%s}\\n`;
  return `printf '${line}' "$MILLRACE_TASK" "$MILLRACE_ATTEMPT" $$ >> '${join(folder, "commands.ndjson")}'`;
};

export type Attempt = {
  readonly task: string;
  readonly attempt: string;
  readonly token: number | undefined;
  readonly pid: number;
  isOver: boolean;
  hasEnded: boolean;
  isAcknowledged: boolean;
};

export type Attempts = { readonly all: readonly Attempt[]; readonly broken: readonly string[] };

export function readAttempts(folder: string): Attempts {
  const attempts = new Map<string, Attempt>();
  const broken: string[] = [];
  for (const name of readdirSync(folder)) {
    // A process that was killed while writing leaves a line without an end.
    const lines = readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);
    for (const line of lines) {
      const wrong = take(JSON.parse(line) as Happening, attempts);
      if (wrong !== undefined) broken.push(wrong);
    }
  }
  return { all: [...attempts.values()], broken };
}

function take({ what, task, attempt, pid }: Happening, attempts: Map<string, Attempt>): string | undefined {
  const key = `${task}${attempt}`;
  const known = attempts.get(key);
  if (what === "start") {
    if (known) return `${key} was begun twice under one claim, by the processes ${known.pid} and ${pid}`;
    const token = attempt.startsWith("#") ? Number(attempt.slice(1)) : undefined;
    attempts.set(key, { task, attempt, token, pid, isOver: false, hasEnded: false, isAcknowledged: false });
    return undefined;
  }
  if (!known) return `${key}: "${what}" of an attempt that was never begun`;
  if (what === "acknowledged") known.isAcknowledged = true;
  else known.isOver = true;
  if (what === "end") known.hasEnded = true;
  return undefined;
}
