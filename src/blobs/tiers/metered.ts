/** Counts what is asked of a store and how long it takes, and changes nothing. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";

export type MeteredCall = {
  readonly call: "missing" | "read" | "write" | "pin";
  /** "ok", or the fault's code. */
  readonly outcome: string;
  readonly tookMs: number;
  /** Of blobs, in or out. */
  readonly bytes: number;
  /** Of digests asked for. */
  readonly count: number;
};

export function metered(blobs: BlobStore, clock: Clock, ended: (call: MeteredCall) => void): BlobStore {
  const timing = (call: MeteredCall["call"], count: number) => {
    const beganMs = clock.monotonicMs();
    return (outcome: string, bytes: number): void =>
      ended({ call, outcome, tookMs: clock.monotonicMs() - beganMs, bytes, count });
  };
  async function timed<T>(call: MeteredCall["call"], count: number, run: () => Promise<T>): Promise<T> {
    const end = timing(call, count);
    try {
      const result = await run();
      end("ok", 0);
      return result;
    } catch (error) {
      end(codeOf(error), 0);
      throw error;
    }
  }
  async function* counting(parts: AsyncIterable<Uint8Array>, add: (bytes: number) => void): AsyncGenerator<Uint8Array> {
    for await (const part of parts) {
      add(part.length);
      yield part;
    }
  }

  return {
    missing: (digests) => timed("missing", digests.length, () => blobs.missing(digests)),
    pin: (digests, forMs) => timed("pin", digests.length, () => blobs.pin(digests, forMs)),
    async *read(digest, range, form) {
      const end = timing("read", 1);
      let bytes = 0;
      let outcome = "left";
      try {
        yield* counting(blobs.read(digest, range, form), (more) => (bytes += more));
        outcome = "ok";
      } catch (error) {
        outcome = codeOf(error);
        throw error;
      } finally {
        end(outcome, bytes);
      }
    },
    async write(digest, source, form) {
      const end = timing("write", 1);
      let bytes = source instanceof Uint8Array ? source.length : 0;
      const counted = source instanceof Uint8Array ? source : counting(source, (more) => (bytes += more));
      try {
        await blobs.write(digest, counted, form);
        end("ok", bytes);
      } catch (error) {
        end(codeOf(error), bytes);
        throw error;
      }
    },
    ...(blobs.prompt && { prompt: blobs.prompt }),
  };
}

const codeOf = (error: unknown): string => (isFault(error) ? error.code : "bug");
