/** Reports every call of a store to an observer, and changes nothing: metrics and traces are observers. */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { extend, extendPrompt } from "./extend.ts";
import type { BlobStore, Range } from "./store.ts";

export type StoreCall = {
  readonly name: "missing" | "read" | "write" | "pin";
  /** Number of digests in the request. */
  readonly count: number;
  /** Of a read or a write. */
  readonly digest?: Digest;
};

export type CallObserver = {
  /** Called for each part of a blob that is read or written, with its length. */
  part?(sizeBytes: number): void;
  /** `outcome` is "ok", "left" (the reader stopped early) or the fault's code; "bug" for any other error. */
  ended(outcome: string, sizeBytes: number): void;
};

export type StoreObserver = {
  begin(call: StoreCall): CallObserver;
  /** A blob was handed out without a read: from memory (`prompt`) or as a file. */
  lent?(sizeBytes: number): void;
};

export function observed(inner: BlobStore, observer: StoreObserver): BlobStore {
  async function during<T>(call: StoreCall, run: () => Promise<T>): Promise<T> {
    const seen = observer.begin(call);
    try {
      const result = await run();
      seen.ended("ok", 0);
      return result;
    } catch (error) {
      seen.ended(codeOf(error), 0);
      throw error;
    }
  }
  return extend(inner, {
    missing: (digests) => during({ name: "missing", count: digests.length }, () => inner.missing(digests)),
    pin: (digests, forMs) => during({ name: "pin", count: digests.length }, () => inner.pin(digests, forMs)),
    read: (digest, range, form) => observedRead(inner.read(digest, range, form), digest, observer),
    async write(digest, source, form) {
      const call = observer.begin({ name: "write", count: 1, digest });
      let sizeBytes = 0;
      const counted = (bytes: number): void => {
        sizeBytes += bytes;
        call.part?.(bytes);
      };
      if (source instanceof Uint8Array) counted(source.length);
      try {
        await inner.write(digest, source instanceof Uint8Array ? source : counting(source, counted), form);
        call.ended("ok", sizeBytes);
      } catch (error) {
        call.ended(codeOf(error), sizeBytes);
        throw error;
      }
    },
    ...(inner.part && { part: (digest, range) => observedPart(inner, observer, digest, range) }),
    ...(inner.adopt && { adopt: (digest, path) => observedAdoption(inner, observer, digest, path) }),
    ...(observer.lent && withLoans(inner, observer.lent.bind(observer))),
  });
}

/** A read, if it was one. */
async function observedPart(
  inner: BlobStore,
  observer: StoreObserver,
  digest: Digest,
  range: Required<Range>,
): Promise<Uint8Array | undefined> {
  const call = observer.begin({ name: "read", count: 1, digest });
  try {
    const bytes = await inner.part?.(digest, range);
    if (bytes) call.part?.(bytes.length);
    call.ended(bytes ? "ok" : "left", bytes?.length ?? 0);
    return bytes;
  } catch (error) {
    call.ended(codeOf(error), 0);
    throw error;
  }
}

/** A write, if it was one. */
async function observedAdoption(
  inner: BlobStore,
  observer: StoreObserver,
  digest: Digest,
  path: string,
): Promise<boolean> {
  const isTaken = (await inner.adopt?.(digest, path)) === true;
  if (isTaken) observer.begin({ name: "write", count: 1, digest }).ended("ok", digestSizeBytes(digest));
  return isTaken;
}

async function* observedRead(
  parts: AsyncIterable<Uint8Array>,
  digest: Digest,
  observer: StoreObserver,
): AsyncGenerator<Uint8Array> {
  const call = observer.begin({ name: "read", count: 1, digest });
  let [outcome, sizeBytes] = ["left", 0];
  try {
    for await (const part of parts) {
      sizeBytes += part.length;
      call.part?.(part.length);
      yield part;
    }
    outcome = "ok";
  } catch (error) {
    outcome = codeOf(error);
    throw error;
  } finally {
    call.ended(outcome, sizeBytes);
  }
}

async function* counting(
  parts: AsyncIterable<Uint8Array>,
  counted: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const part of parts) {
    counted(part.length);
    yield part;
  }
}

const withLoans = (inner: BlobStore, lent: (sizeBytes: number) => void): Pick<BlobStore, "file" | "prompt"> => {
  const prompt = extendPrompt(inner.prompt, {
    bytes(digest) {
      const bytes = inner.prompt?.bytes(digest);
      if (bytes) lent(bytes.length);
      return bytes;
    },
  });
  return {
    ...(inner.file && {
      async file(digest: Digest) {
        const file = await inner.file?.(digest);
        if (file) lent(digestSizeBytes(digest));
        return file;
      },
    }),
    ...(prompt && { prompt }),
  };
};

const codeOf = (error: unknown): string => (isFault(error) ? error.code : "bug");
