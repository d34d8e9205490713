import { relative } from "node:path";
import type { TestsStream } from "node:test";
import { spec } from "node:test/reporters";
import type { Writable } from "node:stream";
import { repoRoot } from "./generate.ts";
import type { TestProcess } from "./test-order.ts";

/** A test that failed itself, not only one of its subtests, and the first line of the reason. */
type Failure = { readonly name: string; readonly file: string; readonly why: string };

export type Skipped = { readonly name: string; readonly reason: string; readonly file: string };

type Duration = { readonly file: string; readonly ms: number };

export type Outcome = {
  readonly failures: readonly Failure[];
  readonly skipped: readonly Skipped[];
  /** How long each file took, the slowest first. */
  readonly durations: readonly Duration[];
  /** The runner's summary ("ℹ tests 12" and so on), held back so that it can be printed last. */
  readonly closingLines: readonly string[];
};

/** Prints a run with node's spec reporter, all but its summary, and collects what failed and what was skipped. */
export async function report(events: TestsStream, processes: readonly TestProcess[], out: Writable): Promise<Outcome> {
  const printer = new spec();
  printer.pipe(out, { end: false });
  const failures: Failure[] = [];
  const skipped: Skipped[] = [];
  const closingLines: string[] = [];
  const durations: Duration[] = [];
  const shared: Shared = new Map(
    processes.filter(({ files }) => files.length > 1).map(({ entry, files }) => [entry, files]),
  );
  for await (const event of events as AsyncIterable<TestEvent>) {
    const file = fileThatEnded(event, shared);
    if (file !== undefined) durations.push(file);
    if (event.type === "test:fail" && event.data.todo === undefined)
      failures.push(failure(event.data, fileOf(event.data, shared, durations)));
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

type TestEvent = { readonly type: string; readonly data: EventData };

type EventData = {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string;
  readonly message?: string;
  readonly duration_ms?: number;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details?: { readonly duration_ms?: number; readonly error?: { readonly message: string } };
};

/** The files of each process that several share, by the file it starts from. */
type Shared = ReadonlyMap<string, readonly string[]>;

/** In a shared process each file is a suite that bears its path; a file alone is summed up by the runner. */
function fileThatEnded({ type, data }: TestEvent, shared: Shared): Duration | undefined {
  const { file, name } = data;
  if (file === undefined) return undefined;
  const files = shared.get(file);
  if (files === undefined)
    return type === "test:summary" ? { file: fromRoot(file), ms: data.duration_ms ?? 0 } : undefined;
  const ended = (type === "test:pass" || type === "test:fail") && files.includes(name);
  return ended ? { file: name, ms: data.details?.duration_ms ?? 0 } : undefined;
}

/** The file of an event; where a shared process died, all of its files that had not ended. */
function fileOf({ name, file }: EventData, shared: Shared, durations: readonly Duration[]): string {
  const files = shared.get(file ?? "");
  if (files === undefined) return fromRoot(file);
  if (files.includes(name)) return name;
  const ended = new Set(durations.map((duration) => duration.file));
  return `one of ${files.filter((each) => !ended.has(each)).join(", ") || files.join(", ")}`;
}

function isSummary({ nesting, file, message }: EventData): boolean {
  const counts = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
  return nesting === 0 && file === undefined && counts.test(message ?? "");
}

function failure(data: EventData, file: string): Failure {
  const lines = (data.details?.error?.message ?? "").split("\n").filter((line) => line.trim() !== "");
  return { name: data.name, file, why: lines[0] ?? "no reason given" };
}

function skippedTest({ name, skip, file }: EventData): Skipped {
  const reason = typeof skip === "string" && skip !== "" ? skip : "no reason given";
  return { name, reason, file: fromRoot(file) };
}

function fromRoot(file: string | undefined): string {
  return file === undefined ? "?" : relative(repoRoot, file);
}
