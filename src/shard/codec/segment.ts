/**
 * A segment of the archived log: for each batch a line of text that names it. A batch of the first encoding is part of
 * its line; for any other encoding the line gives the length in bytes, and the bytes and a line break follow.
 */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { LogRecord, Seq } from "#journal/journal.ts";

const encoder = new TextEncoder();
const newline = 10;
const brace = 0x7b;
const closing = 0x7d;
const prefix = /^\{"seq":(\d{1,16}),"epoch":(\d{1,16}),"(?:batch":|bytes":(\d{1,10})\}\n)/;
const prefixBytesMax = 80;

export function encodeLine({ seq, epoch, payload }: LogRecord): Uint8Array {
  const name = `{"seq":${seq},"epoch":${epoch}`;
  // The first encoding is JSON without line breaks already.
  if (payload[0] === brace) return Buffer.concat([encoder.encode(`${name},"batch":`), payload, encoder.encode("}\n")]);
  return Buffer.concat([encoder.encode(`${name},"bytes":${payload.length}}\n`), payload, encoder.encode("\n")]);
}

export const digestOf = (segment: Uint8Array): Digest =>
  `${createHash("sha256").update(segment).digest("hex")}/${segment.length}`;

/** The batches of a segment whose digest has been verified; "corrupt" unless they are exactly the expected ones. */
export function* decodeLines(
  segment: Uint8Array,
  { fromSeq, throughSeq }: { readonly fromSeq: Seq; readonly throughSeq: Seq },
): Generator<LogRecord> {
  let next = fromSeq;
  for (let start = 0; start < segment.length; next += 1) {
    const found = decodeLine(segment, start);
    if (found?.record.seq !== next || next > throughSeq)
      throw new Fault("corrupt", "decode log segment", {
        why: "not the next batch",
        seq: next,
        found: found?.record.seq,
      });
    yield found.record;
    start = found.end;
  }
  if (next <= throughSeq) throw new Fault("corrupt", "decode log segment", { why: "cut short", seq: next });
}

function decodeLine(segment: Uint8Array, start: number): { record: LogRecord; end: number } | undefined {
  const match = prefix.exec(Buffer.from(segment.subarray(start, start + prefixBytesMax)).toString("latin1"));
  if (!match) return undefined;
  const first = start + match[0].length;
  const isJson = match[3] === undefined;
  const end = isJson ? segment.indexOf(newline, first) - 1 : first + Number(match[3]);
  const after = isJson ? end + 1 : end;
  if (end < first || segment[after] !== newline || (isJson && segment[end] !== closing)) return undefined;
  const record = { seq: Number(match[1]), epoch: Number(match[2]), payload: segment.subarray(first, end) };
  return { record, end: after + 1 };
}
