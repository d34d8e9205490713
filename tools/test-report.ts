import { relative } from "node:path";
import type { TestsStream } from "node:test";
import { spec } from "node:test/reporters";
import type { Writable } from "node:stream";
import { repoRoot } from "./generate.ts";

export type Skipped = { readonly name: string; readonly reason: string; readonly file: string };

type Outcome = {
  readonly failed: boolean;
  readonly skipped: readonly Skipped[];
  /** The runner's summary ("ℹ tests 12" and so on), held back so that it can be printed last. */
  readonly closingLines: readonly string[];
};

/** Prints a run with node's spec reporter, all but its summary, and collects what was skipped. */
export async function report(events: TestsStream, out: Writable): Promise<Outcome> {
  const printer = new spec();
  printer.pipe(out, { end: false });
  let failed = false;
  const skipped: Skipped[] = [];
  const closingLines: string[] = [];
  for await (const event of events as AsyncIterable<{ type: string; data: EventData }>) {
    if (event.type === "test:fail" && event.data.todo === undefined) failed = true;
    if (event.type === "test:pass" && event.data.skip !== undefined) skipped.push(skippedTest(event.data));
    if (event.type === "test:diagnostic" && isSummary(event.data)) closingLines.push(`ℹ ${event.data.message}`);
    else printer.write(event);
  }
  const flushed = new Promise((resolve) => printer.once("end", resolve));
  printer.end(); // prints the failures once more, together
  await flushed;
  return { failed, skipped, closingLines };
}

type EventData = {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string;
  readonly message?: string;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
};

function isSummary({ nesting, file, message }: EventData): boolean {
  const counts = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
  return nesting === 0 && file === undefined && counts.test(message ?? "");
}

function skippedTest({ name, skip, file }: EventData): Skipped {
  const reason = typeof skip === "string" && skip !== "" ? skip : "no reason given";
  return { name, reason, file: file === undefined ? "?" : relative(repoRoot, file) };
}
