/**
 * The output of one attempt: from its worker while it runs, from the store when it has ended. Both agree: what is read
 * live is how the stored output begins.
 */
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { StreamKey } from "#blobs/streams.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { Printed } from "./printed.ts";

export type AttemptPorts = { readonly live: LiveSource | undefined; readonly clock: Clock };

export type AttemptStream = {
  readonly key: StreamKey;
  /** Who runs it, or ran it; undefined where that is not known. */
  readonly worker: string | undefined;
  readonly offset: number;
};

const waitMs = 5_000;
const againMs = 500;
/** A stream that is sealed answers at once that there is no more, until the end of the attempt is known. */
const sealedMs = 50;

/** Bytes from the offset on until `over`; then the rest. Aborted by `signal`, it ends without the rest. */
export async function* attemptBytes(
  ports: AttemptPorts,
  { key, worker, offset }: AttemptStream,
  over: AbortSignal,
  ended: () => Promise<Printed | undefined>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let at = offset;
  const pull = (forMs: number): Promise<Uint8Array | undefined> =>
    worker === undefined ? Promise.resolve(undefined) : pulled(ports, worker, key, at, forMs, over, signal);
  while (worker !== undefined && !over.aborted && !signal.aborted) {
    const bytes = await pull(waitMs);
    if (bytes?.length) yield bytes;
    at += bytes?.length ?? 0;
    if (bytes?.length) continue;
    await ports.clock.sleep(bytes ? sealedMs : againMs, AbortSignal.any([over, signal])).catch(() => {});
  }
  if (signal.aborted) return;
  const printed = await ended();
  const digest = printed?.streams[key.name];
  if (printed && digest !== undefined) {
    if (at < digestSizeBytes(digest)) yield* printed.blobs.read(digest, { offset: at });
    return;
  }
  if (printed) return;
  // No result and no message with a digest: what its worker acknowledged is all there is.
  for (let bytes = await pull(0); bytes?.length && !signal.aborted; bytes = await pull(0)) {
    yield bytes;
    at += bytes.length;
  }
}

async function pulled(
  { live }: AttemptPorts,
  worker: string,
  key: StreamKey,
  at: number,
  forMs: number,
  over: AbortSignal,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const stop = forMs === 0 ? signal : AbortSignal.any([over, signal]);
  try {
    return await live?.pull(worker, key, at, { waitMs: forMs, signal: stop });
  } catch (error) {
    if (!isFault(error) && !stop.aborted) throw error;
    return undefined;
  }
}
