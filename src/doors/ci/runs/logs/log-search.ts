/** Finds text in a job's log, reading it piece by piece. */
import type { LogLine } from "#doors/ci/job/log/log-line.ts";
import type { ServerEvent } from "#http/live/sse.ts";

export type Found = { readonly matches: (LogLine & { readonly line: number })[]; readonly isCut: boolean };

const textLengthMax = 2_000;

/** In any case; lines count from 1. Ends as soon as it has enough. */
export async function searchLog(
  events: AsyncIterable<ServerEvent<{ readonly lines: readonly LogLine[] }>>,
  { text, limit }: { readonly text: string; readonly limit: number },
): Promise<Found> {
  const wanted = text.toLowerCase();
  const matches: Found["matches"] = [];
  let number = 0;
  for await (const { data } of events)
    for (const line of data.lines) {
      number += 1;
      if (!line.text.toLowerCase().includes(wanted)) continue;
      if (matches.length >= limit) return { matches, isCut: true };
      matches.push({ ...line, line: number, text: line.text.slice(0, textLengthMax) });
    }
  return { matches, isCut: false };
}
