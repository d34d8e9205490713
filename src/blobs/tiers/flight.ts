/**
 * One fetch of a blob for everybody who wants it. Readers get the bytes while they arrive, at their own speed; the
 * fetch goes at the speed of the near store, which keeps a copy, and waits for no reader. The latest bytes are held in
 * a window; whoever falls behind it waits for the copy and goes on there.
 *
 * Q1 Nobody gets the end of what they asked for before all bytes of the blob were found right.
 * Q2 A reader that leaves takes nothing from the others; when the last one has left, the fetch ends.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore, Range } from "#blobs/store.ts";
import { Pipe } from "./pipe.ts";

export type FlightOptions = {
  readonly digest: Digest;
  /** Keeps its own promises: what it hands out whole has the digest. */
  readonly from: BlobStore;
  readonly to: BlobStore;
  readonly windowBytesMax: number;
};

type Part = { readonly at: number; readonly bytes: Uint8Array };

export class Flight {
  readonly #options: FlightOptions;
  readonly #window: Part[] = [];
  readonly #verified = Promise.withResolvers<void>();
  readonly #kept = Promise.withResolvers<boolean>();
  #changed = Promise.withResolvers<void>();
  #windowBytes = 0;
  #isOver = false;
  #readers = 0;
  /** When it is over, well or badly. */
  readonly ended: Promise<void>;

  constructor(options: FlightOptions) {
    this.#options = options;
    this.#verified.promise.catch(() => {}); // told to whoever reads
    this.ended = this.#fly();
  }

  /** False once it has been given up: whoever comes now needs another one. */
  get isOpen(): boolean {
    return !this.#isOver;
  }

  /** Whether there is a copy in the near store, once that is known. */
  get kept(): Promise<boolean> {
    return this.#kept.promise;
  }

  async *read({ offset, length = Infinity }: Range): AsyncGenerator<Uint8Array> {
    this.#readers += 1;
    try {
      const end = Math.min(digestSizeBytes(this.#options.digest), offset + length);
      let held: Uint8Array | undefined;
      for (let at = offset; at < end;) {
        if (this.#hasPassed(at)) {
          if (held) yield held;
          return yield* this.#elsewhere({ offset: at, length: end - at });
        }
        const part = this.#partAt(at);
        if (!part) {
          await this.#more();
          continue;
        }
        if (held) yield held;
        held = Uint8Array.from(part.bytes.subarray(at - part.at, end - part.at)); // each reader's own
        at += held.length;
      }
      await this.#verified.promise; // Q1
      if (held) yield held;
    } finally {
      this.#readers -= 1;
      if (this.#readers === 0 && !this.#isOver) this.#end(); // Q2
    }
  }

  async #fly(): Promise<void> {
    const { digest, from, to } = this.#options;
    const pipe = new Pipe();
    const keeping = to.write(digest, pipe.parts()).then(
      () => true,
      () => false, // no room here, for one: readers are served all the same
    );
    void keeping.then(() => pipe.abandon());
    const parts = from.read(digest)[Symbol.asyncIterator]();
    try {
      for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
        if (this.#isOver) throw new Fault("unavailable", "fetch blob", { digest, why: "nobody wants it any more" });
        const bytes = Uint8Array.from(next.value);
        this.#publish(bytes);
        await pipe.send(bytes);
      }
      this.#verified.resolve();
      pipe.end();
    } catch (error) {
      this.#verified.reject(error);
      pipe.fail(error as Error);
      await parts.return?.();
    }
    this.#end();
    this.#kept.resolve(await keeping);
  }

  #end(): void {
    this.#isOver = true;
    this.#changed.resolve();
  }

  #publish(bytes: Uint8Array): void {
    const last = this.#window.at(-1);
    this.#window.push({ at: last ? last.at + last.bytes.length : 0, bytes });
    this.#windowBytes += bytes.length;
    while (this.#windowBytes > this.#options.windowBytesMax && this.#window.length > 1)
      this.#windowBytes -= this.#window.shift()?.bytes.length ?? 0;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  #hasPassed(at: number): boolean {
    const [first] = this.#window;
    return first !== undefined && at < first.at;
  }

  #partAt(at: number): Part | undefined {
    return this.#window.findLast((part) => part.at <= at && at < part.at + part.bytes.length);
  }

  async #more(): Promise<void> {
    if (this.#isOver) {
      await this.#verified.promise;
      throw new Fault("corrupt", "read blob", { digest: this.#options.digest, why: "it is cut short" });
    }
    await this.#changed.promise;
  }

  async *#elsewhere(range: Range): AsyncGenerator<Uint8Array> {
    const { digest, from, to } = this.#options;
    await this.#verified.promise;
    yield* ((await this.#kept.promise) ? to : from).read(digest, range);
  }
}
