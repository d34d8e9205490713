/** What a build tool stores under its own key: a name in the index for a blob in the store. */
import type { Clock } from "#base/clock.ts";
import type { ActionIndex, Entry, EntryKey } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { blobResponse } from "./blob-response.ts";
import { bodyParts, type BodyLimits } from "#http/body.ts";
import type { BuildCaller } from "#doors/build/caller.ts";
import { HttpRefusal, requireFor } from "./refusal.ts";
import type { Spool } from "#blobs/spool.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";

export type CachePorts = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly limits: BodyLimits;
  /** Revoked entries count as missing. */
  readonly trust: Pick<TrustRules, "isRevoked" | "isRevokedAtOnce">;
};

/** One request of an identified caller. */
export type CacheCall = {
  readonly request: Request;
  readonly url: URL;
  readonly caller: BuildCaller;
};

export type Place = { readonly space: string; readonly name: string };

export const keyOf = ({ caller }: CacheCall, { space, name }: Place) => ({ tenant: caller.tenant, space, name });

/** The entry, if it exists and is not revoked. */
export async function findEntry(ports: CachePorts, call: CacheCall, place: Place): Promise<Entry | undefined> {
  const key = keyOf(call, place);
  const entry = ports.index.prompt?.(key) ?? (await ports.index.get(key));
  return entry && (await isBelieved(ports, key, entry)) ? entry : undefined;
}

export async function isBelieved({ trust }: CachePorts, key: EntryKey, entry: Entry): Promise<boolean> {
  return !(trust.isRevokedAtOnce(key, entry) ?? (await trust.isRevoked(key, entry)));
}

/** Throws HttpRefusal 404 if there is no entry. */
export async function entryAt(ports: CachePorts, call: CacheCall, place: Place): Promise<Entry> {
  requireFor(call.caller, "action-cache.read");
  const entry = await findEntry(ports, call, place);
  if (!entry) throw new HttpRefusal(404, "there is nothing under this key");
  return entry;
}

/** For GET and HEAD. */
export async function serveNamed(
  ports: CachePorts,
  call: CacheCall,
  place: Place,
  headers: (entry: Entry) => Readonly<Record<string, string>> = () => ({}),
): Promise<Response> {
  const entry = await entryAt(ports, call, place);
  const { blobs } = ports.store.forTenant(call.caller.tenant);
  return await blobResponse({ request: call.request, blobs, digest: entry.digest, headers: headers(entry) });
}

export type KeepOptions = {
  readonly notes?: Readonly<Record<string, string>>;
  /** 0: only if there is none yet. */
  readonly ifVersion?: number;
};

/** Stores the bytes first, then the name. False: the name had another version. */
export async function keepNamed(
  ports: CachePorts,
  call: CacheCall,
  place: Place,
  { notes, ifVersion }: KeepOptions = {},
): Promise<boolean> {
  const { caller, request } = call;
  requireFor(caller, "cache.write", "action-cache.write");
  await using spooled = await ports.spool.take(bodyParts(request, ports.limits, ports.clock), caller);
  const { digest } = spooled;
  await ports.store.forTenant(caller.tenant).blobs.write(digest, spooled.content());
  const entry = { digest, principal: caller.principal, atMs: ports.clock.wallMs(), ...(notes && { notes }) };
  const written = await ports.index.put(keyOf(call, place), entry, ifVersion);
  return written.kind === "written";
}

/** Whether there was an entry. */
export async function forgetNamed(ports: CachePorts, call: CacheCall, place: Place): Promise<boolean> {
  requireFor(call.caller, "action-cache.write");
  return await ports.index.remove(keyOf(call, place));
}

/** Headers of a request that are stored with an entry, by name, within a length limit. */
export function notesFrom(headers: Headers, names: readonly string[], lengthMax = 600): Record<string, string> {
  const notes: Record<string, string> = {};
  for (const name of names) {
    const value = headers.get(name);
    if (value === null) continue;
    if (value.length > lengthMax) throw new HttpRefusal(400, `the header ${name} is longer than ${lengthMax}`);
    notes[name] = value;
  }
  return notes;
}
