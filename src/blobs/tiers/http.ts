/**
 * A cache that speaks Bazel's HTTP protocol, read-only: `<url>/cas/<hash>`. It is not authoritative, and its bytes are
 * verified (B1).
 */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { partsOf } from "#blobs/hashing.ts";
import { canonical } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { dropBody, type HttpCaller } from "./s3/http-call.ts";
import { verifiedRange } from "./verifying.ts";

export type HttpCacheOptions = {
  readonly caller: HttpCaller;
  readonly url: string;
  readonly token?: string;
  /**
   * The cache is another node. It is asked only for blobs on its own disk, or two nodes would ask each other for a blob
   * that neither has.
   */
  readonly isPeer?: boolean;
};

/** What a cache answers to "only-if-cached" when it would have to ask elsewhere (RFC 9111). */
const notCached = 504;

/** A source of blobs that can only be read. */
export type ReadOnly = Pick<BlobStore, "read">;

export function httpCache({ caller, url, token, isPeer = false }: HttpCacheOptions): ReadOnly {
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(isPeer && { "cache-control": "only-if-cached" }),
  };
  const addressOf = (digest: Digest): URL => {
    const { fn, hash } = partsOf(digest);
    // A path has a hash but no function, and a 32-byte hash there means SHA-256.
    if (fn === "blake3") throw new Fault("not-found", "read blob", { digest });
    return new URL(`${url.replace(/\/$/, "")}/cas/${hash}`);
  };
  return {
    async *read(digest, range) {
      const name = canonical(digest);
      const answer = await caller.call({ method: "GET", url: addressOf(name), headers });
      if (answer.status !== 200) {
        await dropBody(answer);
        const isAbsent = answer.status === 404 || (isPeer && answer.status === notCached);
        throw new Fault(isAbsent ? "not-found" : "unavailable", "read blob", {
          digest: name,
          status: answer.status,
        });
      }
      yield* verifiedRange(name, answer.body, range);
    },
  };
}
