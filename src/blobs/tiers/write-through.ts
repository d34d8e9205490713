/**
 * A write is acknowledged when the far store has it. The near store gets the same bytes and keeps a copy if it has
 * space, but its failure to do so does not fail the write.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore, Form } from "#blobs/store.ts";
import { Pipe } from "./pipe.ts";

export function writeThrough(near: BlobStore, far: BlobStore): BlobStore["write"] {
  return async (digest, source, form) => {
    if (source instanceof Uint8Array)
      return await settled(near.write(digest, source, form), far.write(digest, source, form));
    const write = (to: BlobStore, pipe: Pipe): Promise<void> =>
      piped(to, pipe, { digest, ...(form === undefined ? {} : { form }) });
    const [toNear, toFar] = [new Pipe(), new Pipe()];
    const [kept, sent] = [write(near, toNear), write(far, toFar)];
    sent.catch((error: unknown) => toNear.fail(error as Error)); // then the copy is useless too
    void feed(source, [toNear, toFar]);
    await settled(kept, sent);
  };
}

/** A store that failed takes no more parts, so it must not block the other one. */
async function piped(
  to: BlobStore,
  pipe: Pipe,
  { digest, form }: { readonly digest: Digest; readonly form?: Form },
): Promise<void> {
  try {
    await to.write(digest, pipe.parts(), form);
  } finally {
    pipe.abandon();
  }
}

async function feed(source: AsyncIterable<Uint8Array>, pipes: readonly Pipe[]): Promise<void> {
  try {
    for await (const part of source) {
      await Promise.all(pipes.map((pipe) => pipe.send(part)));
      if (pipes.every((pipe) => pipe.isAbandoned)) return;
    }
    for (const pipe of pipes) pipe.end();
  } catch (error) {
    for (const pipe of pipes) pipe.fail(error as Error);
  }
}

async function settled(keeping: Promise<void>, sending: Promise<void>): Promise<void> {
  const [kept, sent] = await Promise.allSettled([keeping, sending]);
  if (sent.status === "rejected") throw sent.reason;
  if (kept.status === "rejected" && !isFault(kept.reason, "exhausted")) throw kept.reason;
}

/** Smaller blobs are sent without asking first whether they are there. */
const askFirstBytes = 1024 * 1024;

/** Copies a near blob to the far store. */
export async function pushThrough(near: BlobStore, far: BlobStore, digest: Digest): Promise<void> {
  if (digestSizeBytes(digest) >= askFirstBytes && (await far.missing([digest])).length === 0) return;
  await far.write(digest, near.read(digest));
}
