/**
 * Fetches from the internet on behalf of a client: only from addresses that the operator allows, checked at every
 * redirect; otherwise a client could make a node probe its own network.
 */
import type { Digest, DigestFunction } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { createHasher } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Qualifiers, Checksum } from "./asset-qualifiers.ts";
import type { Spool, SpoolOwner } from "#blobs/spool.ts";

export type AssetSettings = {
  /** Allowed address prefixes, such as "https://example.com/releases/". Empty: nothing is fetched. */
  readonly allow: readonly string[];
  readonly bytesMax: number;
  readonly timeoutMs: number;
};

export const assetSettingsDefault: AssetSettings = { allow: [], bytesMax: 16 * 1024 ** 3, timeoutMs: 600_000 };

const redirectsMax = 5;

export function isAllowed(uri: string, { allow }: AssetSettings): boolean {
  const url = URL.parse(uri);
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:") || url.username !== "") return false;
  return allow.some((prefix) => url.href.startsWith(prefix));
}

export type DownloadPorts = {
  readonly blobs: BlobStore;
  readonly spool: Spool;
  readonly owner: SpoolOwner;
  readonly settings: AssetSettings;
  readonly signal: AbortSignal;
};

/** Throws a GrpcError with the code that the client gets inside the answer: a failing upstream is not our failure. */
export async function download(
  uri: string,
  number: number,
  { headers, checksums }: Qualifiers,
  fn: DigestFunction,
  ports: DownloadPorts,
): Promise<Digest> {
  const own = headers.filter((field) => field.uri === undefined || field.uri === number);
  const body = await opened(uri, new Headers(own.map(({ name, value }) => [name, value])), ports);
  const hashers = checksums.map((checksum) => ({ checksum, hasher: createHasher(checksum.fn) }));
  const seen = async function* (): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const part of body) {
      bytes += part.length;
      if (bytes > ports.settings.bytesMax)
        throw new GrpcError(grpcCode.aborted, `more than ${ports.settings.bytesMax} bytes at ${uri}`);
      for (const { hasher } of hashers) hasher.update(part);
      yield part;
    }
  };
  try {
    await using spooled = await ports.spool.take(seen(), ports.owner, fn);
    for (const { checksum, hasher } of hashers) checkSum(uri, checksum, hasher.hex());
    await ports.blobs.write(spooled.digest, spooled.content());
    return spooled.digest;
  } catch (error) {
    if (error instanceof GrpcError || isFault(error)) throw error;
    throw new GrpcError(grpcCode.unavailable, `${uri} broke off`, [], [], error);
  }
}

function checkSum(uri: string, { fn, hash }: Checksum, got: string): void {
  if (got !== hash) throw new GrpcError(grpcCode.aborted, `${uri} has the ${fn} checksum ${got}, not ${hash}`);
}

/** The body of the final answer; every address on the way must be allowed. */
async function opened(uri: string, given: Headers, ports: DownloadPorts): Promise<AsyncIterable<Uint8Array>> {
  let at = uri;
  let headers = given;
  for (let step = 0; step <= redirectsMax; step += 1) {
    if (!isAllowed(at, ports.settings))
      throw new GrpcError(grpcCode.permissionDenied, `${at} is not among what may be fetched here`);
    const response = await requestTo(at, headers, ports.signal);
    const location = response.headers.get("location");
    if (response.status >= 300 && response.status < 400 && location !== null) {
      await response.body?.cancel();
      const next = URL.parse(location, at)?.href ?? "";
      // Headers meant for one host are not sent to another.
      if (URL.parse(next)?.origin !== URL.parse(at)?.origin) headers = new Headers();
      at = next;
      continue;
    }
    if (response.status === 200 && response.body) return response.body;
    await response.body?.cancel();
    throw new GrpcError(codeOf(response.status), `${at} answered ${response.status}`);
  }
  throw new GrpcError(grpcCode.aborted, `${uri}: more than ${redirectsMax} redirects`);
}

async function requestTo(uri: string, headers: Headers, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(uri, { headers, redirect: "manual", signal });
  } catch (error) {
    if (signal.aborted) throw new GrpcError(grpcCode.deadlineExceeded, `${uri} took too long`, [], [], error);
    throw new GrpcError(
      grpcCode.unavailable,
      `${uri} cannot be reached`,
      [],
      [],
      new Fault("unavailable", "fetch", {}, error),
    );
  }
}

function codeOf(status: number): number {
  if (status === 404 || status === 410) return grpcCode.notFound;
  if (status === 401 || status === 403) return grpcCode.permissionDenied;
  return status >= 500 || status === 429 ? grpcCode.unavailable : grpcCode.aborted;
}
