import { relative } from "node:path";
import type { TestsStream } from "node:test";
import { spec } from "node:test/reporters";
import type { Writable } from "node:stream";
import { repoRoot } from "./generate.ts";

/** A test that failed itself, not only one of its subtests, and the first line of the reason. */
type Failure = { readonly name: string; readonly file: string; readonly why: string };

export type Skipped = { readonly name: string; readonly reason: string; readonly file: string };

type Outcome = {
  readonly failures: readonly Failure[];
  readonly skipped: readonly Skipped[];
  /** How long each file took, the slowest first. */
  readonly durations: readonly { readonly file: string; readonly ms: number }[];
  /** The runner's summary ("ℹ tests 12" and so on), held back so that it can be printed last. */
  readonly closingLines: readonly string[];
};

/** Prints a run with node's spec reporter, all but its summary, and collects what failed and what was skipped. */
export async function report(events: TestsStream, out: Writable): Promise<Outcome> {
  const printer = new spec();
  printer.pipe(out, { end: false });
  const failures: Failure[] = [];
  const skipped: Skipped[] = [];
  const closingLines: string[] = [];
  const durations: { readonly file: string; readonly ms: number }[] = [];
  for await (const event of events as AsyncIterable<{ type: string; data: EventData }>) {
    if (event.type === "test:summary" && event.data.file !== undefined)
      durations.push({ file: fromRoot(event.data.file), ms: event.data.duration_ms ?? 0 });
    if (event.type === "test:fail" && event.data.todo === undefined) failures.push(failure(event.data));
    if (event.type === "test:pass" && event.data.skip !== undefined) skipped.push(skippedTest(event.data));
    if (event.type === "test:diagnostic" && isSummary(event.data)) closingLines.push(`ℹ ${event.data.message}`);
    else printer.write(event);
  }
  const flushed = new Promise((resolve) => printer.once("end", resolve));
  printer.end(); // prints the failures once more, together
  await flushed;
  // A suite fails because of its failed tests, and is listed only if nothing else is.
  const own = failures.filter(({ why }) => !/^\d+ subtests? failed$/.test(why));
  durations.sort((a, b) => b.ms - a.ms);
  return { failures: own.length > 0 ? own : failures, skipped, durations, closingLines };
}

type EventData = {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string;
  readonly message?: string;
  readonly duration_ms?: number;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details?: { readonly error?: { readonly message: string } };
};

function isSummary({ nesting, file, message }: EventData): boolean {
  const counts = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
  return nesting === 0 && file === undefined && counts.test(message ?? "");
}

function failure({ name, file, details }: EventData): Failure {
  const lines = (details?.error?.message ?? "").split("\n").filter((line) => line.trim() !== "");
  return { name, file: fromRoot(file), why: lines[0] ?? "no reason given" };
}

function skippedTest({ name, skip, file }: EventData): Skipped {
  const reason = typeof skip === "string" && skip !== "" ? skip : "no reason given";
  return { name, reason, file: fromRoot(file) };
}

function fromRoot(file: string | undefined): string {
  return file === undefined ? "?" : relative(repoRoot, file);
}
