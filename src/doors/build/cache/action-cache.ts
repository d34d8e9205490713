/**
 * The action cache. A result is stored as a blob, and served as the bytes in which it came; an entry of the index says
 * which blob it is, who wrote it, and when.
 *
 * A1 A result is served only while everything that it names exists; serving it counts as a use of all of it.
 * A2 A result is served only if it has not been revoked.
 */
import { digestFunctions, digestText, type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault, type Fault } from "#base/fault.ts";
import type { Entry, EntryKey } from "#blobs/action-index.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import {
  ActionResult,
  type GetActionResultRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { UsualGetActionResult } from "#wire/get-action-result.ts";
import { decode, encode } from "#wire/message.ts";
import type { RawUpdate } from "#wire/raw-message.ts";
import { need } from "#doors/build/caller.ts";
import { closureOf, type Closure } from "./closure.ts";
import { Closures } from "./closures.ts";
import { digestFor, functionFor, functionOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { inlined, wantsInline } from "./inline.ts";
import { blobSubject } from "#doors/build/names.ts";
import { invalid, missingBlobs, notFound } from "#doors/build/refusals.ts";
import { stripped } from "./stripped.ts";
import { isRevoked } from "./trust.ts";
import type { MissReason } from "#doors/build/why/seen.ts";

export class ActionCacheService {
  readonly #ports: BuildPorts;
  readonly #closures = new Closures();

  constructor(ports: BuildPorts) {
    this.#ports = ports;
  }

  /** Throws NOT_FOUND if there is none to serve. Synchronous if everything is at hand, as in a warm build. */
  get(request: GetActionResultRequest, call: BuildCall): Uint8Array | Promise<Uint8Array> {
    const found = this.look(request, call);
    return found instanceof Promise ? found.then(foundOrRefused) : found;
  }

  /** The same for callers that continue without a result: a miss is returned, not thrown. */
  look(request: GetActionResultRequest, call: BuildCall): Uint8Array | Promise<Uint8Array | Missed> {
    need(call.caller, "action-cache.read");
    const { blobs } = storeOf(this.#ports, call);
    const bytes = wantsInline(request) ? undefined : this.#atOnce(request, call, blobs);
    if (!bytes) return this.#lookLater(request, call, blobs);
    this.#ports.looked?.(call.caller.tenant, "hit");
    return bytes;
  }

  async #lookLater(request: GetActionResultRequest, call: BuildCall, blobs: BlobStore): Promise<Uint8Array | Missed> {
    const lookup = this.#lookup(request, call);
    const found = await this.#find(lookup, blobs, request);
    this.#ports.looked?.(call.caller.tenant, found instanceof Missed ? "miss" : "hit");
    if (found instanceof Missed) this.#noteMiss(lookup, call, found.reason);
    return found;
  }

  /** For later "why" questions; most calls are hits, and those are not recorded. */
  #noteMiss({ key, instance, action }: Lookup, call: BuildCall, reason: MissReason): void {
    const { seen } = this.#ports;
    const { targetId = "", actionMnemonic = "", toolInvocationId = "" } = seen ? (call.metadata ?? {}) : {};
    if (!seen || targetId === "") return;
    seen.missed(key.tenant, instance, action, {
      target: targetId,
      mnemonic: actionMnemonic,
      invocation: toolInvocationId,
      reason,
    });
  }

  #atOnce(request: GetActionResultRequest, call: BuildCall, blobs: BlobStore): Uint8Array | undefined {
    const { prompt } = blobs;
    const { index } = this.#ports;
    const usual = request instanceof UsualGetActionResult && index.promptHash ? request : undefined;
    const lookup = usual ? undefined : this.#lookup(request, call);
    const entry = usual ? this.#usualEntry(usual, call) : lookup && index.prompt?.(lookup.key);
    if (!entry || !prompt) return undefined;
    const bytes = prompt.bytes(entry.digest);
    const closure = this.#closures.get(entry.digest, lookup?.fn ?? "sha256");
    const rules = this.#ports.trust.rulesAtOnce(call.caller.tenant);
    if (!bytes || !closure || !rules) return undefined;
    if (rules.length > 0 && isRevoked(rules, (lookup ?? this.#lookup(request, call)).key, entry)) return undefined;
    return closure.isThere(prompt) ? bytes : undefined; // the asynchronous path finds out what is missing
  }

  /** Its key would be a string, and creating that costs more than everything else. */
  #usualEntry(request: UsualGetActionResult, { caller }: BuildCall): Entry | undefined {
    const { index, settings } = this.#ports;
    const space = spaceOf("sha256", servedInstance(request.instanceName, settings));
    if (!request.wordsInto(actionHash)) return undefined;
    return index.promptHash?.({ tenant: caller.tenant, space }, actionHash, request.sizeBytes);
  }

  async #find({ key, fn }: Lookup, blobs: BlobStore, wanted: GetActionResultRequest): Promise<Uint8Array | Missed> {
    const entry = await this.#ports.index.get(key);
    if (!entry) return new Missed({ kind: "never-stored" }, 0);
    if (await this.#ports.trust.isRevoked(key, entry)) return new Missed({ kind: "revoked" }, entry.version);
    const bytes = await this.#stored(entry, blobs);
    if (bytes instanceof Missed) return bytes;
    const closure = await this.#closureOf(entry, bytes, fn, blobs);
    if (closure instanceof Missed) return closure;
    const [missing] = closure.size > 0 ? await blobs.missing(closure.digests()) : [];
    if (missing !== undefined) return new Missed({ kind: "incomplete", missing }, entry.version);
    if (!wantsInline(wanted)) return bytes;
    const result = decode(ActionResult, bytes);
    return encode(ActionResult, await inlined(result, wanted, { fn, blobs, resultBytes: bytes.length }));
  }

  async #stored({ digest, version }: Entry, blobs: BlobStore): Promise<Uint8Array | Missed> {
    try {
      return await wholeBlob(blobs, digest);
    } catch (error) {
      if (isFault(error, "not-found")) return new Missed({ kind: "incomplete", missing: digest }, version);
      throw error;
    }
  }

  /** A stored result that cannot be decoded, or names a missing tree, counts as a miss. */
  async #closureOf(
    { digest: name, version }: Entry,
    bytes: Uint8Array,
    fn: DigestFunction,
    blobs: BlobStore,
  ): Promise<Closure | Missed> {
    const known = this.#closures.get(name, fn);
    if (known) return known;
    try {
      const closure = await closureOf(decode(ActionResult, bytes), fn, blobs);
      this.#closures.keep(name, closure);
      return closure;
    } catch (error) {
      if (isFault(error, "not-found")) return new Missed({ kind: "incomplete", missing: lostOf(error, name) }, version);
      if (!isFault(error, "invalid") && !isGrpcError(error, grpcCode.invalidArgument)) throw error;
      this.#ports.report("read a stored action result", error);
      return new Missed({ kind: "incomplete", missing: name }, version);
    }
  }

  /** Whether another result was stored since a lookup missed (`Missed`). */
  async isNewer(request: Pick<GetActionResultRequest, ActionName>, version: number, call: BuildCall): Promise<boolean> {
    const { key } = this.#lookup(request, call);
    const entry = this.#ports.index.prompt?.(key) ?? (await this.#ports.index.get(key));
    return (entry?.version ?? 0) > version;
  }

  async update(request: RawUpdate, call: BuildCall): Promise<Uint8Array> {
    need(call.caller, "action-cache.write");
    const { key, fn, instance, action } = this.#lookup(request, call);
    const { blobs } = storeOf(this.#ports, call);
    if (!request.actionResult) throw invalid("action_result is not given");
    const { bytes, result } = await stripped(request.actionResult, fn, blobs, call.caller.principal);
    const closure = await wholeOrRefused(result, fn, blobs);
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    this.#closures.keep(digest, closure);
    const { clock, index, seen } = this.#ports;
    await index.put(key, { digest, principal: call.caller.principal, atMs: clock.wallMs() });
    const { targetId: target = "", actionMnemonic: mnemonic = "" } = seen ? (call.metadata ?? {}) : {};
    if (target !== "") await seen?.stored(key.tenant, instance, action, { target, mnemonic });
    return bytes;
  }

  #lookup(request: Pick<GetActionResultRequest, ActionName>, { caller }: BuildCall): Lookup {
    const instance = servedInstance(request.instanceName, this.#ports.settings);
    const { actionDigest } = request;
    if (!actionDigest) throw invalid("action_digest is not given");
    const { hash, sizeBytes } = actionDigest;
    const fn = functionFor(functionOf(request.digestFunction), hash);
    const action = digestFor(fn, hash, sizeBytes);
    // SHA-256 digests are written without the function's name, as everywhere here.
    const name = fn === "sha256" ? action : `${hash}/${sizeBytes}`;
    return { key: { tenant: caller.tenant, space: spaceOf(fn, instance), name }, fn, instance, action };
  }
}

/** For one lookup at a time. */
const actionHash = new Uint32Array(8);

type ActionName = "instanceName" | "actionDigest" | "digestFunction";

type Lookup = {
  readonly key: EntryKey;
  readonly fn: DigestFunction;
  readonly instance: string;
  readonly action: Digest;
};

/** There is no result that could be served. */
export class Missed {
  readonly reason: MissReason;
  /** Of the entry that was found; 0: there was none. */
  readonly version: number;

  constructor(reason: MissReason, version: number) {
    this.reason = reason;
    this.version = version;
  }
}

/** For any reason the caller gets the same answer: it could do nothing about it. */
function foundOrRefused(found: Uint8Array | Missed): Uint8Array {
  if (!(found instanceof Missed)) return found;
  // A normal answer whose stack trace is never read: capturing it would cost more than the lookup.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = notFound("no result of this action is known, or not all of it is here any more");
  Error.stackTraceLimit = stackTraceLimit;
  throw error;
}

/** The store names what it did not find. */
const lostOf = ({ facts }: Fault, otherwise: Digest): Digest =>
  typeof facts["digest"] === "string" ? facts["digest"] : otherwise;

/** The prefix of all of them. */
const resultSpaces = "ac/";

/** Instances have separate results, and so have digest functions. */
export const spaceOf = (fn: DigestFunction, instance: string): string =>
  instance === "" ? (nameless.get(fn) ?? "") : `${resultSpaces}${fn}/${instance}`;

const nameless: ReadonlyMap<DigestFunction, string> = new Map(
  digestFunctions.map((fn) => [fn, `${resultSpaces}${fn}`]),
);

/** A result that names missing blobs would break the builds that get it. */
async function wholeOrRefused(result: ActionResult, fn: DigestFunction, blobs: BlobStore): Promise<Closure> {
  const refuse = (missing: readonly Digest[]) =>
    missingBlobs(`of what the result names, ${missing.length} blobs are not here`, missing.map(blobSubject));
  let closure: Closure;
  try {
    closure = await closureOf(result, fn, blobs);
  } catch (error) {
    if (!isFault(error, "not-found")) throw error;
    throw refuse(await blobs.missing(treesOf(result, fn)));
  }
  const missing = closure.size === 0 ? [] : await blobs.missing(closure.digests());
  if (missing.length > 0) throw refuse(missing);
  return closure;
}

const treesOf = (result: ActionResult, fn: DigestFunction): readonly Digest[] =>
  result.outputDirectories.flatMap(({ treeDigest, rootDirectoryDigest }) =>
    [treeDigest, rootDirectoryDigest].flatMap((digest) =>
      digest && digest.sizeBytes > 0 ? [digestText(fn, digest.hash, digest.sizeBytes)] : [],
    ),
  );
