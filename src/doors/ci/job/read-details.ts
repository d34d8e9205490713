/** Reads the file in which a job left its details, when the job has ended. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { DetailLine, type JobDetails, noDetails } from "#doors/ci/details.ts";
import { writeText } from "#doors/ci/runs/texts.ts";
import { detailsBytesMax } from "./details-file.ts";
import type { JobRequest } from "./request.ts";

const linesMax = 10_000;

/** The job could have put anything there: only a plain file of a reasonable size is read, and only what fits in it. */
export async function readDetails(path: string): Promise<JobDetails | undefined> {
  const text = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).then(
    async (file) => {
      await using opened = file;
      const facts = await opened.stat();
      return facts.isFile() && facts.size <= detailsBytesMax ? await opened.readFile("utf8") : "";
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
  const { annotations, summaries, conditions } = details;
  return annotations.length + summaries.length + conditions.length > 0 ? details : undefined;
}

function readLine(text: string): DetailLine | undefined {
  try {
    return DetailLine.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // an empty line, or one of the job's own
  }
}

/** As a blob; undefined where there is nothing to keep. */
export async function keepDetails(
  path: string,
  blobs: BlobStore,
  laid: JobRequest["actions"] = {},
): Promise<Digest | undefined> {
  const found = Object.entries(laid).flatMap(([uses, { sha }]) => (sha === undefined ? [] : [[uses, sha] as const]));
  const actions = found.length === 0 ? undefined : { actions: Object.fromEntries(found) };
  const details = await readDetails(path);
  if (!details && !actions) return undefined;
  return await writeText(blobs, JSON.stringify({ ...noDetails, ...details, ...actions }));
}
