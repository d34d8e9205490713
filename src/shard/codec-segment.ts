/** A segment of the archived log: text, one batch a line. */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { LogRecord, Seq } from "#journal/journal.ts";

const encoder = new TextEncoder();
const newline = 10;
const prefix = /^\{"seq":(\d{1,16}),"epoch":(\d{1,16}),"batch":/;
const prefixBytesMax = 64;

/** The payload is JSON without line breaks already. */
export const encodeLine = ({ seq, epoch, payload }: LogRecord): Uint8Array =>
  Buffer.concat([encoder.encode(`{"seq":${seq},"epoch":${epoch},"batch":`), payload, encoder.encode("}\n")]);

export const digestOf = (segment: Uint8Array): Digest =>
  `${createHash("sha256").update(segment).digest("hex")}/${segment.length}`;

/** The batches of a segment whose digest has been verified; "corrupt" unless they are exactly those. */
export function* decodeLines(
  segment: Uint8Array,
  { fromSeq, throughSeq }: { readonly fromSeq: Seq; readonly throughSeq: Seq },
): Generator<LogRecord> {
  let next = fromSeq;
  for (let start = 0; start < segment.length; next += 1) {
    const end = segment.indexOf(newline, start);
    const record = end === -1 ? undefined : decodeLine(segment.subarray(start, end));
    if (record?.seq !== next || next > throughSeq)
      throw new Fault("corrupt", "decode log segment", { why: "not the next batch", seq: next, found: record?.seq });
    yield record;
    start = end + 1;
  }
  if (next <= throughSeq) throw new Fault("corrupt", "decode log segment", { why: "cut short", seq: next });
}

function decodeLine(line: Uint8Array): LogRecord | undefined {
  const match = prefix.exec(Buffer.from(line.subarray(0, prefixBytesMax)).toString("latin1"));
  if (!match || line.at(-1) !== "}".charCodeAt(0)) return undefined;
  return { seq: Number(match[1]), epoch: Number(match[2]), payload: line.subarray(match[0].length, -1) };
}
