/** The Remote Asset API: assets by their addresses, pushed by clients, or fetched where that is allowed. */
import type { DigestFunction } from "#base/digest.ts";
import { GrpcError, grpcCode } from "#grpc/status.ts";
import type {
  FetchBlobRequest,
  FetchBlobResponse,
  FetchDirectoryRequest,
  FetchDirectoryResponse,
  PushBlobRequest,
  PushDirectoryRequest,
} from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import type { Digest as WireDigest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { download, isAllowed, type AssetSettings } from "./asset-download.ts";
import { readQualifiers, type Qualifiers } from "./asset-qualifiers.ts";
import {
  findAsset,
  keepAsset,
  millisOf,
  missingOf,
  timestampOf,
  type AssetKind,
  type AssetName,
  type FoundAsset,
} from "./asset-record.ts";
import { need } from "#doors/build/caller.ts";
import { digestOfWire, functionFor, functionOf, numberOf, wireOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import type { Spool } from "#blobs/spool.ts";
import { blobSubject } from "#doors/build/names.ts";
import { invalid, missingBlobs, notFound } from "#doors/build/refusals.ts";

export type AssetPorts = BuildPorts & { readonly assets: AssetSettings; readonly spool: Spool };

type FetchRequest = FetchBlobRequest | FetchDirectoryRequest;
type PushRequest = (PushBlobRequest | PushDirectoryRequest) & { readonly digest: WireDigest | undefined };

const urisMax = 100;
const uriLengthMax = 10_000;

export async function fetchBlob(
  ports: AssetPorts,
  request: FetchBlobRequest,
  call: BuildCall,
): Promise<FetchBlobResponse> {
  const { uri, found, fn } = await fetched(ports, "blob", request, call);
  if (found instanceof GrpcError) return { uri, qualifiers: [], digestFunction: 0, status: inline(found) };
  return { ...said(uri, found, request), blobDigest: wireOf(found.digest), digestFunction: numberOf(fn) };
}

export async function fetchDirectory(
  ports: AssetPorts,
  request: FetchDirectoryRequest,
  call: BuildCall,
): Promise<FetchDirectoryResponse> {
  const { uri, found, fn } = await fetched(ports, "directory", request, call);
  if (found instanceof GrpcError) return { uri, qualifiers: [], digestFunction: 0, status: inline(found) };
  return { ...said(uri, found, request), rootDirectoryDigest: wireOf(found.digest), digestFunction: numberOf(fn) };
}

const inline = ({ code, message, details }: GrpcError) => ({ code, message, details });

const said = (uri: string, { expiresAtMs }: FoundAsset, { qualifiers }: FetchRequest) => ({
  status: { code: grpcCode.ok, message: "", details: [] },
  uri,
  qualifiers,
  expiresAt: expiresAtMs === undefined ? undefined : timestampOf(expiresAtMs),
});

type Fetched = { readonly uri: string; readonly found: FoundAsset | GrpcError; readonly fn: DigestFunction };

async function fetched(ports: AssetPorts, kind: AssetKind, request: FetchRequest, call: BuildCall): Promise<Fetched> {
  need(call.caller, "cache.read");
  const instance = servedInstance(request.instanceName, ports.settings);
  checkUris(request.uris);
  const qualifiers = readQualifiers(request.qualifiers);
  const fn = functionOf(request.digestFunction) ?? "sha256";
  const oldestMs = request.oldestContentAccepted && millisOf(request.oldestContentAccepted);
  for (const uri of request.uris) {
    const name: AssetName = { kind, instance, fn, uri, identity: qualifiers.identity };
    const found = await findAsset(ports, call, name);
    if (found && (oldestMs === undefined || found.atMs >= oldestMs)) return { uri, found, fn };
  }
  const allowed = kind === "blob" ? request.uris.filter((uri) => isAllowed(uri, ports.assets)) : [];
  if (allowed.length === 0)
    throw notFound("no asset of this name was pushed, and none of its addresses may be fetched here");
  // Nothing is written for a caller that may not write the cache.
  need(call.caller, "cache.write");
  return await downloaded(ports, { request, instance, fn, qualifiers, allowed }, call);
}

type Wanted = {
  readonly request: FetchRequest;
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly qualifiers: Qualifiers;
  readonly allowed: readonly string[];
};

/** The first address that works; if none does, the failure of the last. */
async function downloaded(ports: AssetPorts, wanted: Wanted, call: BuildCall): Promise<Fetched> {
  const { request, instance, fn, qualifiers, allowed } = wanted;
  const givenMs = request.timeout ? millisOf(request.timeout) : ports.assets.timeoutMs;
  const timeout = AbortSignal.timeout(Math.max(0, Math.min(givenMs, ports.assets.timeoutMs)));
  const signal = AbortSignal.any([call.signal, timeout]);
  const { blobs } = storeOf(ports, call);
  let failed: Fetched | undefined;
  for (const uri of allowed)
    try {
      const number = request.uris.indexOf(uri);
      const digest = await download(uri, number, qualifiers, fn, {
        blobs,
        spool: ports.spool,
        owner: call.caller,
        settings: ports.assets,
        signal,
      });
      const asset = { digest, references: [], directories: [] };
      await keepAsset(ports, call, [{ kind: "blob", instance, fn, uri, identity: qualifiers.identity }], asset);
      return { uri, found: { ...asset, atMs: ports.clock.wallMs() }, fn };
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      failed = { uri, found: error, fn };
    }
  return failed as Fetched;
}

export async function pushBlob(ports: BuildPorts, request: PushBlobRequest, call: BuildCall): Promise<object> {
  return await pushed(ports, "blob", { ...request, digest: request.blobDigest }, call);
}

export async function pushDirectory(
  ports: BuildPorts,
  request: PushDirectoryRequest,
  call: BuildCall,
): Promise<object> {
  return await pushed(ports, "directory", { ...request, digest: request.rootDirectoryDigest }, call);
}

/** A push decides what others get for an address, just as a result does. */
async function pushed(ports: BuildPorts, kind: AssetKind, request: PushRequest, call: BuildCall): Promise<object> {
  need(call.caller, "action-cache.write");
  const instance = servedInstance(request.instanceName, ports.settings);
  checkUris(request.uris);
  const { identity } = readQualifiers(request.qualifiers);
  const given = functionOf(request.digestFunction);
  const digest = digestOfWire(request.digest, given, "the digest of the asset");
  const fn = functionFor(given, request.digest?.hash ?? "");
  const asset = {
    digest,
    references: request.referencesBlobs.map((one) => digestOfWire(one, given, "a reference")),
    directories: request.referencesDirectories.map((one) => digestOfWire(one, given, "a reference")),
    ...(request.expireAt && { expiresAtMs: millisOf(request.expireAt) }),
  };
  const missing = await missingOf(ports, call, asset, { kind, fn });
  if (missing.length > 0)
    throw missingBlobs(`of the asset, ${missing.length} blobs are not here`, missing.map(blobSubject));
  const names = request.uris.map((uri) => ({ kind, instance, fn, uri, identity }));
  await keepAsset(ports, call, names, asset);
  return {};
}

function checkUris(uris: readonly string[]): void {
  if (uris.length === 0) throw invalid("no address is given");
  if (uris.length > urisMax) throw invalid(`more than ${urisMax} addresses`);
  for (const uri of uris)
    if (uri === "" || uri.length > uriLengthMax || !/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri))
      throw invalid("an address begins with a scheme, such as https:");
}
