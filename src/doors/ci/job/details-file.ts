/** The file in which a job leaves its details: its program writes it, and the node reads it when the job has ended. */
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { DetailLine, type JobDetails } from "#doors/ci/details.ts";
import type { Report } from "#doors/ci/run/report.ts";
import { writeText } from "#doors/ci/runs/texts.ts";

/** Of the file: what comes later is left out. */
const bytesMax = 8 * 1024 * 1024;
const linesMax = 10_000;

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
    if (this.#bytes + bytes.length > bytesMax) return;
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

/** The job could have put anything there: only a plain file of a reasonable size is read, and only what fits in it. */
export async function readDetails(path: string): Promise<JobDetails | undefined> {
  const text = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).then(
    async (file) => {
      await using opened = file;
      const facts = await opened.stat();
      return facts.isFile() && facts.size <= bytesMax ? await opened.readFile("utf8") : "";
    },
    () => "",
  );
  const details: JobDetails = { annotations: [], summaries: [], conditions: [] };
  for (const line of text.split("\n").slice(0, linesMax)) {
    const read = readLine(line);
    if (!read) continue;
    if ("annotation" in read) details.annotations.push(read.annotation);
    else if ("summary" in read) details.summaries.push(read.summary);
    else details.conditions.push(read.condition);
  }
  return Object.values(details).some((list) => list.length > 0) ? details : undefined;
}

function readLine(text: string): DetailLine | undefined {
  try {
    return DetailLine.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // an empty line, or one of the job's own
  }
}

/** As a blob; undefined where there is nothing to keep. */
export async function keepDetails(path: string, blobs: BlobStore): Promise<Digest | undefined> {
  const details = await readDetails(path);
  return details && (await writeText(blobs, JSON.stringify(details)));
}
