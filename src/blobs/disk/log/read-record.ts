/** Reads one record of the log and checks it: synchronously while the disk is fast. */
import { read, readSync } from "node:fs";
import { Fault } from "#base/fault.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import type { InlineGate } from "#blobs/disk/upload/inline-gate.ts";
import { openRecord, type Header } from "./record.ts";
import type { Segments } from "./segments.ts";

export type ReadRecord = {
  readonly header: Header;
  /** Begins at the record's first byte. Valid until the reader awaits something. */
  readonly bytes: Buffer;
};

export type RecordSpan = { readonly segment: number; readonly offset: number; readonly lengthBytes: number };

const scratchBytes = 128 * 1024;

export class RecordReader {
  readonly #segments: Segments;
  readonly #gate: InlineGate;
  readonly #scratch = Buffer.allocUnsafeSlow(scratchBytes);

  constructor(segments: Segments, gate: InlineGate) {
    this.#segments = segments;
    this.#gate = gate;
  }

  /** Undefined if the disk is slow. Throws "corrupt" if there is no valid record. */
  readNow(place: RecordSpan): ReadRecord | undefined {
    const { segment, offset, lengthBytes } = place;
    if (lengthBytes > scratchBytes || !this.#gate.isOpen()) return undefined;
    const fd = this.#acquire(place);
    try {
      const got = this.#gate.run(() => readSync(fd, this.#scratch, 0, lengthBytes, offset));
      return checked(this.#scratch.subarray(0, got), place);
    } catch (error) {
      throw asDiskFault(error, "read log", { segment, offset });
    } finally {
      this.#segments.release(segment, fd);
    }
  }

  async read(place: RecordSpan): Promise<ReadRecord> {
    const { segment, offset, lengthBytes } = place;
    const now = this.readNow(place);
    if (now) return now;
    const fd = this.#acquire(place);
    try {
      const bytes = Buffer.allocUnsafe(lengthBytes);
      const got = await new Promise<number>((resolve, reject) => {
        read(fd, bytes, 0, lengthBytes, offset, (error, count) => (error ? reject(error) : resolve(count)));
      });
      return checked(bytes.subarray(0, got), place);
    } catch (error) {
      throw asDiskFault(error, "read log", { segment, offset });
    } finally {
      this.#segments.release(segment, fd);
    }
  }

  #acquire({ segment, offset }: RecordSpan): number {
    try {
      return this.#segments.acquire(segment);
    } catch (error) {
      const gone = (error as NodeJS.ErrnoException).code === "ENOENT";
      throw gone ? corrupt(segment, offset) : asDiskFault(error, "read log", { segment, offset });
    }
  }
}

function checked(bytes: Buffer, { segment, offset }: RecordSpan): ReadRecord {
  const header = openRecord(bytes, 0);
  if (!header) throw corrupt(segment, offset);
  return { header, bytes };
}

const corrupt = (segment: number, offset: number): Fault => new Fault("corrupt", "read log", { segment, offset });
