/**
 * Caches of a repository. An entry belongs to the ref that wrote it; a job reads those of its own ref, then of the
 * refs below it, and writes to its own only.
 *
 * SV6 An entry never changes: of all that save one key, one succeeds.
 * SV7 What a repository holds stays below its quota: what was not used for longest goes first.
 */
import { randomInt } from "node:crypto";
import { Problem } from "#http/problem.ts";
import type { BlockUploads, UploadPorts, UploadRef } from "#doors/ci/services/block-uploads.ts";
import {
  checkCacheKey,
  checkCacheKeys,
  checkCacheVersion,
  entryName,
  isUnused,
  repositoryPrefix,
  toEvict,
  versionPrefix,
} from "./cache-match.ts";
import { keepContent, type Content } from "#doors/ci/services/content.ts";
import type { CheckName } from "#doors/ci/secrets/open-names.ts";
import type { JobIdentity } from "#doors/ci/services/job-token.ts";
import { nameLimits } from "#doors/ci/services/limits.ts";
import { documentOf, everyName, type NameRecord } from "#doors/ci/services/names.ts";

export type CacheEntry = {
  readonly id: number;
  readonly repository: string;
  readonly ref: string;
  readonly key: string;
  readonly version: string;
  readonly createdAtMs: number;
  readonly usedAtMs: number;
  readonly sizeBytes: number;
  readonly claim: number;
  /** Until it is whole, where its bytes go. */
  readonly upload?: string;
  readonly content?: Content;
};

export type WholeEntry = CacheEntry & Required<Pick<CacheEntry, "content">>;

/** Where the entry with a number is. */
type Numbered = { readonly name: string; readonly upload: string; readonly claim: number };

export type CachePorts = UploadPorts & { readonly uploads: BlockUploads; readonly checkName: CheckName };

type Job = Pick<JobIdentity, "tenant" | "repository" | "cacheRefs" | "claim">;
export type KeyedVersion = { readonly key: string; readonly version: string };

const cacheKind = "ci.cache";
const idKind = "ci.cache-id";
const idMax = 2 ** 47;
/** How exactly the time of the last use is kept. */
const usedEveryMs = 60_000;

export class Caches {
  readonly #ports: CachePorts;

  constructor(ports: CachePorts) {
    this.#ports = ports;
  }

  /** The first key that an entry has, or begins with, in the first ref that has one (semantics 69). */
  async find(job: Job, keys: readonly string[], version: string): Promise<WholeEntry | undefined> {
    checkCacheKeys(keys);
    checkCacheVersion(version);
    for (const ref of job.cacheRefs) {
      const found = await this.#findIn(job, ref, keys, version);
      if (found) return found;
    }
    return undefined;
  }

  async #findIn(job: Job, ref: string, keys: readonly string[], version: string): Promise<WholeEntry | undefined> {
    const { tenant, repository } = job;
    const [first = ""] = keys;
    const name = entryName(repository, ref, version, first);
    const exact = await this.#ports.names.read({ tenant, kind: cacheKind, name });
    if (exact && (await this.#use(tenant, exact))) return documentOf<WholeEntry>(exact);
    const newest: NameRecord[] = [];
    const prefix = versionPrefix(repository, ref, version);
    for await (const record of everyName(this.#ports.names, { tenant, kind: cacheKind, prefix, order: "newest" }))
      newest.push(record);
    for (const key of keys)
      for (const record of newest)
        if (documentOf<CacheEntry>(record).key.startsWith(key) && (await this.#use(tenant, record)))
          return documentOf<WholeEntry>(record);
    return undefined;
  }

  /** Whether the entry is whole and its bytes are there; then it counts as used. */
  async #use(tenant: string, record: NameRecord): Promise<boolean> {
    const { names, store, clock, limits } = this.#ports;
    const entry = documentOf<CacheEntry>(record);
    if (!entry.content) return false;
    const nowMs = clock.wallMs();
    if (isUnused(entry, nowMs, limits.cacheUnusedMs)) {
      await this.#forget(tenant, record);
      return false;
    }
    const id = { tenant, kind: cacheKind, name: record.name };
    try {
      await keepContent(store.forTenant(tenant).blobs, entry.content, limits.cacheUnusedMs);
    } catch {
      await this.#forget(tenant, record);
      return false;
    }
    if (nowMs - entry.usedAtMs >= usedEveryMs)
      await names.replace(id, record.version, JSON.stringify({ ...entry, usedAtMs: nowMs }));
    return true;
  }

  /** Undefined: there is an entry with this key already, or another job is saving one. */
  async begin(
    job: Job,
    { key, version }: KeyedVersion,
    sizeBytes = 0,
  ): Promise<(UploadRef & { readonly saving: number }) | undefined> {
    checkCacheKey(key);
    checkCacheVersion(version);
    await this.#ports.checkName(job, "key", key);
    const { names, clock, limits, uploads } = this.#ports;
    const { tenant, repository, claim } = job;
    if (sizeBytes > limits.cacheBytesMax) throw new Problem(400, `a cache has at most ${limits.cacheBytesMax} bytes`);
    const ref = writtenRef(job);
    const name = entryName(repository, ref, version, key);
    const nowMs = clock.wallMs();
    const before = await names.read({ tenant, kind: cacheKind, name });
    if (before && !this.#makesWay(documentOf<CacheEntry>(before), claim)) return undefined;
    const upload = await uploads.begin(tenant, limits.cacheBytesMax);
    const saving = await this.#newId(tenant, { name, upload: upload.id, claim });
    const entry: CacheEntry = {
      id: saving,
      repository,
      ref,
      key,
      version,
      claim,
      createdAtMs: nowMs,
      usedAtMs: nowMs,
      sizeBytes: 0,
      upload: upload.id,
    };
    const id = { tenant, kind: cacheKind, name };
    const text = JSON.stringify(entry);
    const isMine = before
      ? (await names.replace(id, before.version, text, nameLimits)) !== undefined
      : (await names.create(id, text, nameLimits)).created;
    if (!isMine) return undefined;
    return { ...upload, saving };
  }

  async finalize(job: Job, { key, version }: KeyedVersion, sizeBytes: number): Promise<CacheEntry> {
    checkCacheKey(key);
    checkCacheVersion(version);
    const { names, store, clock, limits, uploads } = this.#ports;
    const { tenant, repository } = job;
    const id = { tenant, kind: cacheKind, name: entryName(repository, writtenRef(job), version, key) };
    const record = await names.read(id);
    const entry = record && documentOf<CacheEntry>(record);
    if (!record || !entry || entry.claim !== job.claim)
      throw new Problem(404, "this attempt is not saving a cache with this key");
    if (entry.content) return entry;
    const content = await uploads.content({ tenant, id: entry.upload ?? "" });
    if (!content) throw new Problem(400, "the cache's bytes have not been uploaded");
    if (content.sizeBytes !== sizeBytes)
      throw new Problem(400, `the cache has ${content.sizeBytes} bytes, and the call says ${sizeBytes}`);
    await keepContent(store.forTenant(tenant).blobs, content, limits.cacheUnusedMs);
    const { upload = "", ...rest } = entry;
    const whole: CacheEntry = { ...rest, content, sizeBytes, usedAtMs: clock.wallMs() };
    if (!(await names.replace(id, record.version, JSON.stringify(whole))))
      throw new Problem(409, "another call changed this cache");
    await uploads.end({ tenant, id: upload });
    await this.#makeRoom(tenant, repository);
    return whole;
  }

  /** The upload that a number stands for, of this attempt. */
  async saving(job: Job, saving: string): Promise<{ readonly entry: CacheEntry; readonly upload: UploadRef }> {
    const { names } = this.#ports;
    const { tenant, claim } = job;
    const record = /^\d{1,15}$/.test(saving) ? await names.read({ tenant, kind: idKind, name: saving }) : undefined;
    const found = record && documentOf<Numbered>(record);
    const kept = found?.claim === claim ? await names.read({ tenant, kind: cacheKind, name: found.name }) : undefined;
    if (!found || !kept) throw new Problem(404, "this attempt is not saving a cache with this number");
    return { entry: documentOf<CacheEntry>(kept), upload: { tenant, id: found.upload } };
  }

  async byId(tenant: string, id: string): Promise<WholeEntry | undefined> {
    const { names } = this.#ports;
    const record = /^\d{1,15}$/.test(id) ? await names.read({ tenant, kind: idKind, name: id }) : undefined;
    const kept = record && (await names.read({ tenant, kind: cacheKind, name: documentOf<Numbered>(record).name }));
    const entry = kept && documentOf<CacheEntry>(kept);
    return entry?.content && String(entry.id) === id && !this.#isOver(entry) ? (entry as WholeEntry) : undefined;
  }

  /** Of what has the same name: one whose time is over, and what another attempt began and did not finish. */
  #makesWay(entry: CacheEntry, mine: number): boolean {
    const { clock, limits } = this.#ports;
    if (entry.content) return this.#isOver(entry);
    return entry.claim === mine || entry.createdAtMs + limits.uploadMs <= clock.wallMs();
  }

  #isOver(entry: CacheEntry): boolean {
    const { clock, limits } = this.#ports;
    return isUnused(entry, clock.wallMs(), limits.cacheUnusedMs);
  }

  async list(tenant: string, repository: string): Promise<readonly WholeEntry[]> {
    const found: WholeEntry[] = [];
    for (const record of await this.#all(tenant, repository)) {
      const entry = documentOf<CacheEntry>(record);
      if (entry.content && !this.#isOver(entry)) found.push(entry as WholeEntry);
    }
    return found;
  }

  /** One page of that list. */
  async page(
    tenant: string,
    repository: string,
    { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
  ): Promise<{ readonly entries: readonly WholeEntry[]; readonly next: string | undefined }> {
    const prefix = repositoryPrefix(repository);
    const query = { tenant, kind: cacheKind, prefix, order: "newest", limit, cursor } as const;
    const { records, cursor: next } = await this.#ports.names.list(query);
    const entries = records.map((record) => documentOf<CacheEntry>(record));
    return { entries: entries.filter((entry): entry is WholeEntry => !!entry.content && !this.#isOver(entry)), next };
  }

  /** How many were removed. */
  async remove(tenant: string, repository: string, which: (entry: CacheEntry) => boolean): Promise<number> {
    let removed = 0;
    for (const record of await this.#all(tenant, repository))
      if (which(documentOf<CacheEntry>(record)) && (await this.#forget(tenant, record))) removed += 1;
    return removed;
  }

  async #all(tenant: string, repository: string): Promise<readonly NameRecord[]> {
    const prefix = repositoryPrefix(repository);
    const query = { tenant, kind: cacheKind, prefix, order: "newest" } as const;
    const found: NameRecord[] = [];
    for await (const record of everyName(this.#ports.names, query)) found.push(record);
    return found;
  }

  /** SV7 */
  async #makeRoom(tenant: string, repository: string): Promise<void> {
    const { clock, limits } = this.#ports;
    const all = (await this.#all(tenant, repository)).map((record) => ({ ...documentOf<CacheEntry>(record), record }));
    const whole = all.filter(({ content }) => content !== undefined);
    const unusedSinceMs = clock.wallMs() - limits.cacheUnusedMs;
    for (const { record } of toEvict(whole, limits.cacheRepositoryBytesMax, unusedSinceMs))
      await this.#forget(tenant, record);
  }

  async #newId(tenant: string, numbered: Numbered): Promise<number> {
    for (;;) {
      const id = randomInt(1, idMax);
      const name = { tenant, kind: idKind, name: String(id) };
      if ((await this.#ports.names.create(name, JSON.stringify(numbered), nameLimits)).created) return id;
    }
  }

  async #forget(tenant: string, { name, version, document }: NameRecord): Promise<boolean> {
    const { names } = this.#ports;
    if (!(await names.remove({ tenant, kind: cacheKind, name }, version))) return false;
    const { id } = JSON.parse(document) as CacheEntry;
    const numbered = { tenant, kind: idKind, name: String(id) };
    const record = await names.read(numbered);
    if (record) await names.remove(numbered, record.version);
    return true;
  }
}

function writtenRef({ cacheRefs }: Job): string {
  const [own] = cacheRefs;
  if (own === undefined) throw new Problem(403, "this job may not write caches");
  return own;
}
