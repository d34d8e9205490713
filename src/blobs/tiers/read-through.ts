/**
 * A near store as a cache over a far one, which has the word on what exists. What is near is read there; what is not is
 * fetched once, however many want it, and kept. What is written is acknowledged when the far one has it.
 *
 * A far store that does not answer is never guessed for: what is missing is then "unavailable". Whether blobs that are
 * near are served meanwhile is `whenDead`.
 */
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore, LentFile, Range } from "#blobs/store.ts";
import { Flight } from "./flight.ts";
import { Gate } from "./gate.ts";
import { writeThrough } from "./write-through.ts";

export type WhenDead = "refuse" | "serve-local";

export type ReadThroughOptions = {
  readonly near: BlobStore;
  readonly far: BlobStore & { readonly isDead?: boolean };
  readonly whenDead: WhenDead;
  /** Of what one fetch holds for its readers. */
  readonly windowBytesMax?: number;
  readonly flightsMax?: number;
  /** Told once for each read. */
  readonly served?: (from: "near" | "far") => void;
};

export function readThrough(options: ReadThroughOptions): BlobStore {
  const { near, far, whenDead, windowBytesMax = 4 * 1024 * 1024 } = options;
  const flights = new Map<Digest, Flight>();
  const gate = new Gate(options.flightsMax ?? 64);

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
    // The gate is held by who begins a fetch, for as long as it goes on, not by who joins it.
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
      // Not here, or no longer readable here: the far store goes on where it stopped.
      if (!isFault(error) || !replaceable.has(error.code)) throw error;
    }
    const rest = { offset: at, ...(range.length !== undefined && { length: range.length - (at - range.offset) }) };
    const under = flights.get(digest);
    // All of it has come, and is just being kept here: it need not come once more.
    if (under && !under.isOpen && (await under.kept)) return yield* plain(digest, rest);
    options.served?.("far");
    yield* fetched(digest, rest);
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

  return extend(far, {
    write: writeThrough(near, far),
    file: near.file || far.file ? lent : undefined,
    read: readsFrom((digest, range) => {
      checkAlive(digest);
      return plain(digest, range);
    }),
  });
}

const replaceable: ReadonlySet<string> = new Set(["not-found", "corrupt", "unavailable"]);
