/** Writes a job's log and its steps for the node to read, in larger pieces than lines. */
import { closeSync, fstatSync, openSync, writeSync } from "node:fs";
import type { Report } from "#doors/ci/run/report.ts";
import { DetailsWriter } from "./details-file.ts";
import { formatLine, linesOf } from "./log/log-line.ts";
import { names, type StepNews } from "./request.ts";
import type { KeptNews } from "#doors/ci/resume/step-keeper.ts";

const flushMs = 20;
const heldMax = 64 * 1024;

export class JobFiles implements Disposable {
  readonly #log: number;
  readonly #steps: number;
  readonly #details: DetailsWriter;
  readonly #bytesMax: number;
  #held = "";
  #bytes = 0;
  #isFull = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string, bytesMax: number) {
    this.#log = openSync(`${folder}/${names.log}`, "a", 0o600);
    this.#steps = openSync(`${folder}/${names.steps}`, "a", 0o600);
    this.#details = new DetailsWriter(`${folder}/${names.details}`);
    this.#bytesMax = bytesMax;
    this.#bytes = fstatSync(this.#log).size; // an earlier attempt's
  }

  /** Tells the node that something is kept, with the log as it is now. */
  kept(news: KeptNews): void {
    this.#flush();
    writeAll(this.#steps, `${JSON.stringify({ ...news, logBytes: fstatSync(this.#log).size })}\n`);
  }

  add(report: Report): void {
    const atMs = Date.now();
    const at = new Date(atMs).toISOString();
    for (const line of linesOf(report, at)) this.#write(formatLine(line));
    this.#details.add(report);
    const news = newsOf(report, atMs);
    if (!news) return;
    this.#flush(); // who sees a step end has its log
    writeAll(this.#steps, `${JSON.stringify(news)}\n`);
  }

  #write(text: string): void {
    if (this.#isFull) return;
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > this.#bytesMax) {
      this.#isFull = true;
      const full = `the log is longer than ${this.#bytesMax} bytes: the rest is left out`;
      this.#held += formatLine({ at: new Date().toISOString(), kind: "error", text: full });
    } else this.#held += text;
    if (this.#held.length > heldMax) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), flushMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#held !== "") writeAll(this.#log, this.#held);
    this.#held = "";
  }

  [Symbol.dispose](): void {
    this.#flush();
    closeSync(this.#log);
    closeSync(this.#steps);
    this.#details[Symbol.dispose]();
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
}

/** Steps of actions are theirs: the job's own are told. */
function newsOf(report: Report, atMs: number): StepNews | undefined {
  if (report.kind === "job-note" || report.step.depth > 0) return undefined;
  const { number, name } = report.step;
  if (report.kind === "step-started") return { number, name, status: "started", atMs, tookMs: 0 };
  if (report.kind === "step-skipped") return { number, name, status: "skipped", atMs, tookMs: 0 };
  if (report.kind !== "step-ended") return undefined;
  const tookMs = Math.round(report.tookMs);
  return { number, name, status: report.conclusion, atMs: atMs - tookMs, tookMs };
}
