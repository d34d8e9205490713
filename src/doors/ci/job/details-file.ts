/**
 * The file in which a job leaves its details. The program of every job loads this: what reads the file, and needs much
 * more for that, is in read-details.ts.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { DetailLine } from "#doors/ci/details.ts";
import type { Report } from "#doors/ci/run/report.ts";

/** Of the file: what comes later is left out. */
export const detailsBytesMax = 8 * 1024 * 1024;

export class DetailsWriter implements Disposable {
  readonly #file: number;
  #bytes = 0;

  constructor(path: string) {
    this.#file = openSync(path, "a", 0o600);
  }

  add(report: Report): void {
    const line = detailOf(report);
    if (!line) return;
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    if (this.#bytes + bytes.length > detailsBytesMax) return;
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

function detailOf(report: Report): DetailLine | undefined {
  switch (report.kind) {
    case "annotation":
      return { annotation: { step: report.step.number, ...report.annotation } };
    case "summary":
      return { summary: { step: report.step.number, text: report.text } };
    case "step-skipped":
      return report.step.depth > 0
        ? undefined
        : { condition: { step: report.step.number, condition: report.condition } };
    default:
      return undefined;
  }
}
