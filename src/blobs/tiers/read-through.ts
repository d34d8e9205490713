/**
 * A near store as a cache over a far one, which is authoritative. Near blobs are read there; others are fetched once
 * for all readers, and a copy is kept. A write is acknowledged when the far store has it.
 *
 * If the far store does not answer, nothing is guessed: a request that needs it is "unavailable". `whenDead` says
 * whether near blobs are served meanwhile.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore, LentFile, LentPath, Range } from "#blobs/store.ts";
import { Flight } from "./flight.ts";
import { Gate } from "./gate.ts";
import { PartBudget } from "./ranges/part-budget.ts";
import { partBytesMax } from "./ranges/part-reads.ts";
import { pushThrough, writeThrough } from "./write-through.ts";

export type WhenDead = "refuse" | "serve-local";

export type ReadThroughOptions = {
  readonly near: BlobStore;
  readonly far: BlobStore & { readonly isDead?: boolean };
  readonly whenDead: WhenDead;
  /** How many bytes one fetch holds for its readers. */
  readonly windowBytesMax?: number;
  readonly flightsMax?: number;
  /** Called once for each read. */
  readonly served?: (from: "near" | "far") => void;
};

export function readThrough(options: ReadThroughOptions): BlobStore {
  const { near, far, whenDead, windowBytesMax = 4 * 1024 * 1024 } = options;
  const flights = new Map<Digest, Flight>();
  const gate = new Gate(options.flightsMax ?? 64);
  const parts = new PartBudget();

  const flightOf = (digest: Digest): Flight => {
    const under = flights.get(digest);
    if (under?.isOpen) return under;
    const flight = new Flight({ digest, from: far, to: near, windowBytesMax });
    flights.set(digest, flight);
    void flight.ended.then(() => {
      if (flights.get(digest) === flight) flights.delete(digest);
    });
    return flight;
  };

  async function* fetched(digest: Digest, range: Range): AsyncGenerator<Uint8Array> {
    const under = flights.get(digest);
    if (under?.isOpen) return yield* under.read(range);
    // The read that begins a fetch holds the gate until the fetch ends; reads that join it do not.
    const begun = Promise.withResolvers<Flight>();
    gate
      .through(async () => {
        const flight = flightOf(digest);
        begun.resolve(flight);
        await flight.ended;
      })
      .catch(begun.reject);
    yield* (await begun.promise).read(range);
  }

  async function* plain(digest: Digest, range: Range): AsyncGenerator<Uint8Array> {
    let at = range.offset;
    try {
      for await (const part of near.read(digest, range)) {
        at += part.length;
        yield part;
      }
      options.served?.("near");
      return;
    } catch (error) {
      // Missing or unreadable here: continue from the far store at the same offset.
      if (!isFault(error) || !replaceable.has(error.code)) throw error;
      // The bytes that were handed out may be wrong: more of them would make a whole of it.
      if (error.code === "corrupt" && at > range.offset) throw error;
    }
    const rest = { offset: at, ...(range.length !== undefined && { length: range.length - (at - range.offset) }) };
    const under = flights.get(digest);
    // The whole blob has arrived and is being stored here: no second fetch.
    if (under && !under.isOpen && (await under.kept)) return yield* plain(digest, rest);
    options.served?.("far");
    const gotBytes = yield* partly(digest, rest, under !== undefined);
    const { length = Infinity } = rest;
    if (gotBytes >= length) return;
    yield* fetched(digest, { offset: at + gotBytes, ...(rest.length !== undefined && { length: length - gotBytes }) });
  }

  /** What can be had of a small part of a large blob without fetching the blob. Returns how many bytes that was. */
  async function* partly(
    digest: Digest,
    { offset, length }: Range,
    isComing: boolean,
  ): AsyncGenerator<Uint8Array, number> {
    if (!far.part || isComing || length === undefined) return 0;
    const wanted = Math.min(length, digestSizeBytes(digest) - offset);
    let got = 0;
    while (got < wanted && (got > 0 || parts.take(digest, wanted))) {
      const part = await far.part(digest, { offset: offset + got, length: Math.min(partBytesMax, wanted - got) });
      if (!part) break;
      got += part.length;
      yield part;
    }
    return got < wanted ? got : length;
  }

  const checkAlive = (digest: Digest): void => {
    if (far.isDead === true && whenDead === "refuse")
      throw new Fault("unavailable", "read blob", { digest, why: "the authoritative tier does not answer" });
  };
  const lent = async (digest: Digest): Promise<LentFile | undefined> => {
    checkAlive(digest);
    const file = await near.file?.(digest);
    if (!file) return await far.file?.(digest);
    options.served?.("near");
    return file;
  };

  /** A blob that is only far is brought here first. */
  const lentPath = async (digest: Digest): Promise<LentPath | undefined> => {
    checkAlive(digest);
    const here = await near.path?.(digest);
    if (here || (await near.missing([digest])).length === 0) return here;
    for await (const _ of plain(digest, { offset: 0 }));
    await flights.get(digest)?.kept;
    return await near.path?.(digest);
  };
  const adopt = async (digest: Digest, path: string): Promise<boolean> => {
    if (!(await near.adopt?.(digest, path))) return false;
    await pushThrough(near, far, digest);
    return true;
  };

  return extend(far, {
    write: writeThrough(near, far),
    adopt: near.adopt && adopt,
    path: near.path && lentPath,
    file: near.file || far.file ? lent : undefined,
    read: readsFrom((digest, range) => {
      checkAlive(digest);
      return plain(digest, range);
    }),
  });
}

const replaceable: ReadonlySet<string> = new Set(["not-found", "corrupt", "unavailable"]);
