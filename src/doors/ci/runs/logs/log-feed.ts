/**
 * The log of one job: complete lines, in batches of at most 100. Behind each line is a place, the claim and the offset
 * there, so that a reader who comes back misses nothing and sees nothing twice.
 */
import { followOutput, type FollowPorts } from "#worker/follow/job-output.ts";
import { Position } from "#worker/follow/position.ts";
import type { ServerEvent } from "#http/live/sse.ts";
import { parseLine, type LogLine } from "#doors/ci/job/log/log-line.ts";

export type LogQuery = {
  readonly run: string;
  readonly tenant: string;
  readonly task: number;
  readonly follow: boolean;
  /** Where the reader was before; left out: at the beginning. */
  readonly from?: LogPlace | undefined;
  readonly signal: AbortSignal;
};

export type LogPlace = { readonly token: number; readonly offset: number };

/** Lines of one attempt, from one place up to another. */
export type LogBatch = {
  /** Undefined where there was no log at all. */
  readonly token: number | undefined;
  readonly offset: number;
  readonly lines: readonly LogLine[];
  /** Offsets behind each line. */
  readonly ends: readonly number[];
  /** The offset behind all of it. */
  readonly end: number;
  /** Nothing comes after it. */
  readonly ended?: true;
};

type LogPiece = LogPlace & { readonly bytes: Uint8Array };
export type LogEvent = ServerEvent<{ lines: LogLine[]; ended?: true; shed?: string }>;

const batchLines = 100;

export async function* logFeed(ports: FollowPorts, query: LogQuery): AsyncGenerator<LogBatch> {
  let place = query.from;
  let rest: Buffer = Buffer.alloc(0);
  for await (const { token, offset, bytes } of piecesOf(ports, query)) {
    if (!place || place.token !== token || place.offset + rest.length !== offset) {
      rest = Buffer.alloc(0); // another attempt writes its own log
      place = { token, offset };
    }
    const text = Buffer.concat([rest, bytes]);
    for (const batch of batchesOf(text, place)) {
      yield batch;
      place = { token, offset: batch.end };
    }
    rest = text.subarray(text.lastIndexOf(newline) + 1);
  }
  // without it a browser would ask again and again
  const { token, offset = 0 } = place ?? {};
  if (query.follow && !query.signal.aborted) yield { token, offset, lines: [], ends: [], end: offset, ended: true };
}

async function* piecesOf(
  ports: FollowPorts,
  { run, tenant, task, follow, signal, from: place }: LogQuery,
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

/** The whole lines of a text that begins at a place. */
function* batchesOf(text: Buffer, { token, offset }: LogPlace): Generator<LogBatch> {
  let lines: LogLine[] = [];
  let ends: number[] = [];
  let began = 0;
  for (let at = 0, end = text.indexOf(newline); end >= 0; at = end + 1, end = text.indexOf(newline, at)) {
    const line = parseLine(text.subarray(at, end).toString("utf8"));
    if (line) {
      lines.push(line);
      ends.push(offset + end + 1);
    }
    if (lines.length < batchLines) continue;
    yield { token, offset: offset + began, lines, ends, end: offset + end + 1 };
    [lines, ends, began] = [[], [], end + 1];
  }
  const last = text.lastIndexOf(newline) + 1;
  if (last > began) yield { token, offset: offset + began, lines, ends, end: offset + last };
}

const idOf = (token: number, offset: number): string => `${token}.${offset}`;

/** `step`: only this step's lines. */
export function eventOf({ token, lines, end, ended }: LogBatch, step?: number): LogEvent {
  const own = step === undefined ? [...lines] : lines.filter((line) => line.step === step);
  return { ...(token !== undefined && { id: idOf(token, end) }), data: { lines: own, ...(ended && { ended }) } };
}

/** What a reader brings back. */
export function placeIn(id: string | undefined): LogPlace | undefined {
  const [, token, offset] = /^(\d{1,15})\.(\d{1,15})$/.exec(id ?? "") ?? [];
  return token === undefined ? undefined : { token: Number(token), offset: Number(offset) };
}

/** What of a batch is behind an offset in it. */
export function behind(batch: LogBatch, offset: number): LogBatch {
  if (offset <= batch.offset) return batch;
  const first = batch.ends.findIndex((end) => end > offset);
  const from = first < 0 ? batch.ends.length : first;
  return { ...batch, offset, lines: batch.lines.slice(from), ends: batch.ends.slice(from) };
}
