/**
 * Signals to the stage of a running command. Each that the command takes becomes a line of a file, and then a signal of
 * the system if the job file names one: so that a program learns both that there is something and what it is.
 */
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProcessRequest } from "#worker/process.ts";
import type { RunContext } from "#worker/runner.ts";
import type { SignalWays } from "./plan.ts";

type Tell = Parameters<NonNullable<ProcessRequest["started"]>>[0];

export type TakenSignals = {
  readonly env: Readonly<Record<string, string>>;
  readonly started: (tell: Tell) => void;
};

/** The number of the step that shows the first of them; the command itself is step 1. */
const firstStep = 2;

/**
 * A signal that was sent before the command began is in the file only: a program that has just started would be ended
 * by the system's signal before it could say what to do with it.
 */
export async function takeSignals(
  ways: SignalWays,
  { onSignal, report, clock }: Pick<RunContext, "onSignal" | "report" | "clock">,
  folder: string,
): Promise<TakenSignals> {
  const path = join(folder, ".millrace-signals");
  await writeFile(path, "", { mode: 0o600, flag: "wx" });
  const command = Promise.withResolvers<Tell>();
  let startedAtMs = 0;
  const names = Object.keys(ways);
  onSignal?.(async ({ name, payload, by, atMs }) => {
    const way = ways[name];
    if (way === undefined || !names.includes(name)) return;
    const tell = await command.promise;
    const at = atMs === undefined ? undefined : new Date(atMs).toISOString();
    await appendFile(path, `${JSON.stringify({ name, payload, by, at })}\n`);
    if (way !== "file" && (atMs ?? startedAtMs) >= startedAtMs) tell(`SIG${way}`);
    report({ step: firstStep + names.indexOf(name), name: `signal ${name}`, status: "succeeded" });
  });
  return {
    env: { MILLRACE_SIGNALS: path },
    started(tell) {
      startedAtMs = clock.wallMs();
      command.resolve(tell);
    },
  };
}
