/**
 * One fetch of a blob, shared by all readers that want it. Readers get bytes as they arrive, each at its own speed. The
 * fetch runs at the speed of the near store, which keeps a copy, and waits for no reader. The latest bytes are held in
 * a window; a reader that falls behind it waits for the copy and continues there.
 *
 * Q1 No reader gets the end of its range before all bytes of the blob were verified.
 * Q2 A reader that leaves does not affect the others; when the last one leaves, the fetch ends.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore, Range } from "#blobs/store.ts";
import { Pipe } from "./pipe.ts";

export type FlightOptions = {
  readonly digest: Digest;
  /** Must verify: a blob that it returns whole has the digest. */
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
  /** Resolves when the fetch is over, with or without success. */
  readonly ended: Promise<void>;

  constructor(options: FlightOptions) {
    this.#options = options;
    this.#verified.promise.catch(() => {}); // readers get this error
    this.ended = this.#fly();
  }

  /** False once the fetch was abandoned: a new reader needs another one. */
  get isOpen(): boolean {
    return !this.#isOver;
  }

  /** Whether the near store has a copy; resolves when that is known. */
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
        held = Uint8Array.from(part.bytes.subarray(at - part.at, end - part.at)); // a copy for each reader
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
      () => false, // for example no space here; readers are still served
    );
    void keeping.then(() => pipe.abandon());
    const parts = from.read(digest)[Symbol.asyncIterator]();
    try {
      for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
        if (this.#isOver) throw new Fault("unavailable", "fetch blob", { digest, why: "no reader is left" });
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
      throw new Fault("corrupt", "read blob", { digest: this.#options.digest, why: "it is truncated" });
    }
    await this.#changed.promise;
  }

  async *#elsewhere(range: Range): AsyncGenerator<Uint8Array> {
    const { digest, from, to } = this.#options;
    await this.#verified.promise;
    yield* ((await this.#kept.promise) ? to : from).read(digest, range);
  }
}
