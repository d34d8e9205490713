/** Every event of a cluster in order, read directly: from the log, and from the archive where the log was trimmed. */
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import { decodeLines } from "#shard/codec/segment.ts";

export type LoggedEvent = { readonly shard: number; readonly seq: Seq; readonly epoch: number; readonly event: Event };

export class JournalLog {
  readonly #journal: Journal;
  readonly #blobs: BlobStore;
  readonly #read: Seq[];
  readonly #tell: (told: LoggedEvent) => void;

  constructor(
    ports: { readonly journal: Journal; readonly blobs: BlobStore },
    shards: number,
    tell: (told: LoggedEvent) => void,
  ) {
    this.#journal = ports.journal;
    this.#blobs = ports.blobs;
    this.#read = Array.from({ length: shards }, () => 0);
    this.#tell = tell;
  }

  /** Returns what was added since the last call. */
  async catchUp(): Promise<void> {
    for (const shard of this.#read.keys()) await this.#catchUp(shard);
  }

  async #catchUp(shard: number): Promise<void> {
    try {
      await this.#log(shard);
    } catch (error) {
      if (!isFault(error, "not-found")) throw error;
      await this.#archive(shard);
      await this.#log(shard);
    }
  }

  async #log(shard: number): Promise<void> {
    const from = this.#seqOf(shard) + 1;
    for await (const { seq, epoch, payload } of this.#journal.read(shard, from)) {
      this.#take(shard, seq, epoch, payload);
    }
  }

  async #archive(shard: number): Promise<void> {
    for (const segment of await this.#journal.segments(shard)) {
      const { digest, throughSeq } = segment;
      if (throughSeq <= this.#seqOf(shard)) continue;
      const parts: Uint8Array[] = [];
      for await (const part of this.#blobs.read(digest)) parts.push(part);
      for (const { seq, epoch, payload } of decodeLines(Buffer.concat(parts), segment))
        if (seq > this.#seqOf(shard)) this.#take(shard, seq, epoch, payload);
    }
  }

  #take(shard: number, seq: Seq, epoch: number, payload: Uint8Array): void {
    if (seq !== this.#seqOf(shard) + 1)
      throw new Fault("corrupt", "read the whole log", { shard, seq, after: this.#seqOf(shard) });
    for (const event of decodeEvents(payload)) this.#tell({ shard, seq, epoch, event });
    this.#read[shard] = seq;
  }

  #seqOf(shard: number): Seq {
    return this.#read[shard] ?? 0;
  }
}
