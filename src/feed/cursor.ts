/**
 * A cursor: how far a reader has got in each shard. One opaque text outside: base64url of the version, the cluster's
 * hash, and for each shard the seq and how many items of the next batch were delivered, as variable-length numbers.
 */
import { Fault } from "#base/fault.ts";
import { hash32 } from "#base/random.ts";
import type { Seq } from "#journal/journal.ts";

/** All of the batch `seq` and those before it, and `skip` items of the next. */
export type Position = { readonly seq: Seq; readonly skip: number };

const version = 1;
/** More than 1,024 shards with the largest numbers need. */
export const cursorLengthMax = 16_384;

export function encodeCursor(positions: readonly Position[], clusterId: string): string {
  const bytes: number[] = [version];
  number(bytes, hash32(clusterId));
  number(bytes, positions.length);
  for (const { seq, skip } of positions) {
    // Nearly every position is at the end of a batch: one bit says so.
    number(bytes, seq * 2 + (skip > 0 ? 1 : 0));
    if (skip > 0) number(bytes, skip);
  }
  return Buffer.from(bytes).toString("base64url");
}

export function decodeCursor(cursor: string, expected: { clusterId: string; shards: number }): readonly Position[] {
  if (cursor.length > cursorLengthMax || !/^[\w-]+$/.test(cursor)) throw wrong("it is no cursor of this feed");
  const read = reader(Buffer.from(cursor, "base64url"));
  if (read() !== version) throw wrong("it is no cursor of this feed");
  if (read() !== hash32(expected.clusterId)) throw wrong("it is of another cluster");
  if (read() !== expected.shards) throw wrong("it is of a cluster with another number of shards");
  return Array.from({ length: expected.shards }, () => {
    const value = read();
    return { seq: Math.floor(value / 2), skip: value % 2 === 1 ? read() : 0 };
  });
}

function number(bytes: number[], value: number): void {
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
}

function reader(bytes: Uint8Array): () => number {
  let at = 0;
  return () => {
    let [value, unit] = [0, 1];
    for (;;) {
      const byte = bytes[at];
      at += 1;
      if (byte === undefined || unit > 2 ** 49) throw wrong("it is cut short");
      value += (byte % 128) * unit;
      if (byte < 128) return value;
      unit *= 128;
    }
  };
}

const wrong = (why: string): Fault => new Fault("invalid", "read the cursor of an event feed", { why });
