/**
 * How far each shard's log was acknowledged, in a small file beside the database. SQLite ends its write-ahead log
 * silently at the first frame that is damaged or missing, and everything acknowledged after it would be gone without
 * an error. The mark is written after the commit and before the answer: so it never says more than the log had, a
 * process that is killed loses nothing of it, and only a power failure may leave it a moment behind.
 */
import { closeSync, fdatasync, openSync, readFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Tail } from "#journal/journal.ts";
import { faultOf } from "./database.ts";
import { makeFolder } from "./files.ts";

/** Per shard: seq, hash, and a checksum of the slot with its number. */
const slotBytes = 24;
const syncEveryMs = 1_000;

export type Marked = { readonly shard: ShardId; readonly seq: number; readonly hash: number };

export function encodeSlot({ shard, seq, hash }: Marked): Buffer {
  const slot = Buffer.alloc(slotBytes);
  slot.writeDoubleLE(seq, 0);
  slot.writeDoubleLE(hash, 8);
  slot.writeUInt32LE(checksum(slot, shard), 16);
  return slot;
}

/** Neighbouring slots as one, each to be written by one call. */
export function runsOf(marks: readonly Marked[]): { readonly shard: ShardId; readonly slots: Buffer }[] {
  const runs: { readonly shard: ShardId; slots: Buffer }[] = [];
  for (const mark of marks.toSorted((a, b) => a.shard - b.shard)) {
    const last = runs.at(-1);
    if (last && last.shard + last.slots.length / slotBytes === mark.shard)
      last.slots = Buffer.concat([last.slots, encodeSlot(mark)]);
    else runs.push({ shard: mark.shard, slots: encodeSlot(mark) });
  }
  return runs;
}

/** Slots that are damaged say nothing, and are left out. */
export function decodeSlots(bytes: Buffer): Marked[] {
  const found: Marked[] = [];
  for (let shard = 0; (shard + 1) * slotBytes <= bytes.length; shard += 1) {
    const slot = bytes.subarray(shard * slotBytes, (shard + 1) * slotBytes);
    const seq = slot.readDoubleLE(0);
    if (seq > 0 && slot.readUInt32LE(16) === checksum(slot, shard))
      found.push({ shard, seq, hash: slot.readDoubleLE(8) });
  }
  return found;
}

const checksum = (slot: Buffer, shard: ShardId): number => crc32(slot.subarray(0, 16), shard + 1);

export type LogEnd = {
  /** The newest record, or where the log was trimmed; undefined if the shard is unknown. */
  end(shard: ShardId): Tail | undefined;
  /** The hash of a record that is still in the log. */
  hash(shard: ShardId, seq: number): number | undefined;
};

/** The first shard whose log lacks what was acknowledged, or has another record in its place. */
export function lackingOf(marks: readonly Marked[], log: LogEnd): (Marked & { readonly found: number }) | undefined {
  for (const mark of marks) {
    const found = log.end(mark.shard)?.seq ?? 0;
    if (found < mark.seq) return { ...mark, found };
    const hash = log.hash(mark.shard, mark.seq);
    if (hash !== undefined && hash !== mark.hash) return { ...mark, found: mark.seq - 1 };
  }
  return undefined;
}

/** Refuses a log that lacks what was acknowledged; `log` may find it damaged. */
export function checkMarks(
  marks: readonly Marked[],
  log: () => LogEnd,
  files: { readonly log: string; readonly mark: string },
): void {
  let lacking: ReturnType<typeof lackingOf>;
  try {
    lacking = lackingOf(marks, log());
  } catch (error) {
    const { code, facts } = faultOf("open journal", error);
    const way = code === "corrupt" ? { try: "bring its files back from a backup" } : {};
    throw new Fault(code, "open journal", { ...facts, path: files.log, ...way }, error);
  }
  if (!lacking) return;
  throw new Fault("corrupt", "open journal", {
    path: `${files.log}-wal`,
    shard: lacking.shard,
    found: lacking.found,
    acknowledged: lacking.seq,
    why: "it was cut or changed: records that were acknowledged are missing",
    try: `bring ${files.log} and ${files.log}-wal back from a backup; or remove ${files.mark}, to go on without these records`,
  });
}

export function readMarks(path: string): Marked[] {
  try {
    return decodeSlots(readFileSync(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export class TailMark {
  readonly #file: number;
  #syncedAtMs = 0;
  #isSyncing = false;
  #isClosed = false;

  constructor(path: string, { isNew }: { readonly isNew: boolean }) {
    makeFolder(dirname(path));
    // A file that is opened to append cannot be written at positions.
    closeSync(openSync(path, isNew ? "w" : "a", 0o600));
    this.#file = openSync(path, "r+");
  }

  /**
   * Never fails: the records are durable, and a mark that is behind only detects less until the next append writes it
   * again.
   */
  put(marks: readonly Marked[], nowMs: number): void {
    try {
      for (const { shard, slots } of runsOf(marks)) writeSync(this.#file, slots, 0, slots.length, shard * slotBytes);
    } catch {
      return;
    }
    if (this.#isSyncing || nowMs - this.#syncedAtMs < syncEveryMs) return;
    this.#isSyncing = true;
    this.#syncedAtMs = nowMs;
    // Not waited for: the log itself is synced already.
    fdatasync(this.#file, () => {
      this.#isSyncing = false;
      if (this.#isClosed) closeSync(this.#file);
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.#isSyncing) closeSync(this.#file);
  }
}
