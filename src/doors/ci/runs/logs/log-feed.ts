/**
 * The log of one job as events: complete lines, in batches of 100 or of what came within 100 ms. The id of an event is
 * the claim and the offset behind its last line, so that a reader who comes back misses nothing and sees nothing twice.
 */
import { followOutput, type FollowPorts } from "#worker/follow/job-output.ts";
import { Position } from "#worker/follow/position.ts";
import type { ServerEvent } from "#http/live/sse.ts";
import { parseLine, type LogLine } from "#doors/ci/job/log-line.ts";

export type LogQuery = {
  readonly run: string;
  readonly tenant: string;
  readonly task: number;
  readonly follow: boolean;
  /** Only this step's lines. */
  readonly step?: number | undefined;
  readonly lastEventId?: string | undefined;
  readonly signal: AbortSignal;
};

type LogEvent = ServerEvent<{ lines: LogLine[]; ended?: true }>;

const batchLines = 100;

export async function* logFeed(ports: FollowPorts, query: LogQuery): AsyncGenerator<LogEvent> {
  const { step } = query;
  let place = placeIn(query.lastEventId);
  let rest: Buffer = Buffer.alloc(0);
  for await (const { token, offset, bytes } of piecesOf(ports, query, place)) {
    if (!place || place.token !== token || place.offset + rest.length !== offset) {
      rest = Buffer.alloc(0); // another attempt writes its own log
      place = { token, offset };
    }
    const text = Buffer.concat([rest, bytes]);
    for (const batch of batchesOf(text)) {
      place = { token, offset: place.offset + batch.bytes };
      const lines = batch.lines.filter((line) => step === undefined || line.step === step);
      yield { id: `${token}.${place.offset}`, data: { lines } };
    }
    rest = text.subarray(text.lastIndexOf(newline) + 1);
  }
  // without it a browser would ask again and again
  if (query.follow && !query.signal.aborted)
    yield { ...(place && { id: `${place.token}.${place.offset}` }), data: { lines: [], ended: true } };
}

type LogPlace = { readonly token: number; readonly offset: number };
type LogPiece = LogPlace & { readonly bytes: Uint8Array };

async function* piecesOf(
  ports: FollowPorts,
  { run, tenant, task, follow, signal }: LogQuery,
  place: LogPlace | undefined,
): AsyncGenerator<LogPiece> {
  const from = Position.start();
  if (place) from.read(task, { ...place, stream: 0 });
  for await (const one of followOutput(ports, { jobId: run, tenant }, { task, follow, from, signal })) {
    if (one.kind !== "output") continue;
    // `from` goes on ahead of what was passed on: the piece's own position says whose it is
    const token = Position.parse(one.position)?.tokenOf(task) ?? 0;
    yield { token, offset: one.offset, bytes: one.bytes };
  }
}

const newline = 0x0a;

/** The whole lines of a text. */
function* batchesOf(text: Buffer): Generator<{ readonly lines: readonly LogLine[]; readonly bytes: number }> {
  let lines: LogLine[] = [];
  let began = 0;
  for (let at = 0, end = text.indexOf(newline); end >= 0; at = end + 1, end = text.indexOf(newline, at)) {
    const line = parseLine(text.subarray(at, end).toString("utf8"));
    if (line) lines.push(line);
    if (lines.length < batchLines) continue;
    yield { lines, bytes: end + 1 - began };
    [lines, began] = [[], end + 1];
  }
  const last = text.lastIndexOf(newline) + 1;
  if (last > began) yield { lines, bytes: last - began };
}

function placeIn(id: string | undefined): { readonly token: number; readonly offset: number } | undefined {
  const [, token, offset] = /^(\d{1,15})\.(\d{1,15})$/.exec(id ?? "") ?? [];
  return token === undefined ? undefined : { token: Number(token), offset: Number(offset) };
}
