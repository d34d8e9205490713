/**
 * Objects of buckets as files of this node. A job reads the versions that were there when it was planned: each is
 * fetched under its etag. Files are kept for other tasks, up to a limit; those that no task holds go first.
 *
 * BG2 What is read is the version that was found, whole; another one fails the job.
 */
import { createHash } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, matchesGlob } from "node:path";
import { Fault } from "#base/fault.ts";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { Gate } from "#blobs/tiers/gate.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import { orRefused, type OpenBucket } from "./buckets.ts";
import type { BucketGrant, Grant } from "./grant-config.ts";
import { isPattern } from "./node-files.ts";
import { isFor, type Asker, type Place } from "./resolve.ts";
import type { Need } from "./source-files.ts";
import { writeObject } from "./object-file.ts";
import { versionFiles } from "./versions-in-bucket.ts";

export type ObjectsOptions = {
  readonly folder: string;
  readonly bytesMax: number;
  readonly open: OpenBucket;
};

export type Wanted = {
  readonly asker: Asker;
  readonly grants: readonly Grant[];
  readonly need: Need;
  readonly signal: AbortSignal;
};

type Kept = { readonly path: string; readonly bytes: number; uses: number };

const keysMax = 10_000;
const callsMax = 16;

export class Objects {
  readonly #options: ObjectsOptions;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  readonly #coming = new Map<string, Promise<unknown>>();
  readonly #gate = new Gate(callsMax);
  #bytes = 0;

  private constructor(options: ObjectsOptions) {
    this.#options = options;
  }

  /** What an earlier process left is not trusted. */
  static async open(options: ObjectsOptions): Promise<Objects> {
    await rm(options.folder, { recursive: true, force: true });
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    return new Objects(options);
  }

  async find(
    { grant, bucket, key: pattern }: Extract<Place, { kind: "object" }>,
    tenant: string,
    signal: AbortSignal,
  ): Promise<readonly SourceFile[]> {
    using client = await this.#options.open(bucket, tenant);
    const url = (key: string): string => `s3://${bucket.bucket}/${key}`;
    const keys = await orRefused(url(pattern), () => keysOf(client, bucket, pattern, signal));
    const found = await Promise.all(
      keys.map((key) =>
        this.#gate.through(async () => {
          signal.throwIfAborted();
          checkKey(key);
          const about = await orRefused(url(key), () => client.head(key));
          const place = about && `${bucket.endpoint} ${bucket.bucket} ${key} ${about.etag}`;
          return about && { path: url(key), bytes: about.sizeBytes, place, object: { grant, key, etag: about.etag } };
        }),
      ),
    );
    return found.flatMap((one) => (one?.place === undefined ? [] : [{ ...one, place: one.place }]));
  }

  /** Keeps all of them here until the result is disposed. */
  async hold(
    files: readonly SourceFile[],
    wanted: Wanted,
  ): Promise<Disposable & { readonly pathOf: (file: SourceFile) => string }> {
    const held = new Map<string, Kept>();
    const release = (): void => {
      for (const one of held.values()) one.uses -= 1;
      held.clear();
    };
    using clients = new DisposableStack();
    const opened = new Map<string, Promise<S3Client>>();
    const clientOf = (grant: string): Promise<S3Client> => {
      const found = opened.get(grant);
      if (found) return found;
      const opening = this.#options.open(bucketOf(grant, wanted), wanted.asker.tenant).then((one) => clients.use(one));
      opened.set(grant, opening);
      return opening;
    };
    try {
      const outcomes = await Promise.allSettled(
        files.map((file) =>
          this.#gate.through(async () => {
            const id = idOf(file, wanted.need);
            if (held.has(id)) return;
            held.set(id, await this.#bring(id, file, clientOf, wanted));
          }),
        ),
      );
      const failed = outcomes.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    } catch (error) {
      release();
      throw error;
    }
    return {
      pathOf: (file) => held.get(idOf(file, wanted.need))?.path ?? "",
      [Symbol.dispose]: release,
    };
  }

  async #bring(
    id: string,
    file: SourceFile,
    clientOf: (grant: string) => Promise<S3Client>,
    { need, signal }: Wanted,
  ): Promise<Kept> {
    for (;;) {
      signal.throwIfAborted();
      const kept = this.#kept.get(id);
      if (kept) {
        kept.uses += 1;
        this.#kept.delete(id);
        this.#kept.set(id, kept);
        return kept;
      }
      const coming = this.#coming.get(id);
      if (coming) {
        await coming.catch(() => {});
        continue;
      }
      const fetching = this.#fetch(id, file, clientOf, need, signal).finally(() => this.#coming.delete(id));
      this.#coming.set(id, fetching);
      await fetching;
    }
  }

  async #fetch(
    id: string,
    file: SourceFile,
    clientOf: (grant: string) => Promise<S3Client>,
    need: Need,
    signal: AbortSignal,
  ): Promise<void> {
    const { grant = "", key = "" } = file.object ?? {};
    this.#makeRoom(file.bytes);
    const home = join(this.#options.folder, id);
    const coming = `${home}.coming`;
    const path = join(coming, ...key.split("/").map(fileName));
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const client = await clientOf(grant);
      await using handle = await open(path, "wx+", 0o600);
      await orRefused(file.path, () => writeObject(file, { client, handle, need, signal }));
      await rename(coming, home);
    } catch (error) {
      await rm(coming, { recursive: true, force: true });
      throw error;
    }
    this.#kept.set(id, { path: join(home, ...key.split("/").map(fileName)), bytes: file.bytes, uses: 0 });
    this.#bytes += file.bytes;
  }

  #makeRoom(bytes: number): void {
    const { bytesMax } = this.#options;
    for (const [id, kept] of this.#kept) {
      if (this.#bytes + bytes <= bytesMax) return;
      if (kept.uses > 0) continue;
      this.#kept.delete(id);
      this.#bytes -= kept.bytes;
      void rm(join(this.#options.folder, id), { recursive: true, force: true }).catch(() => {});
    }
    if (this.#bytes + bytes > bytesMax)
      throw new Fault("exhausted", "read bucket", { bytes, bytesMax, why: "no room for its objects as files" });
  }
}

async function keysOf(
  client: S3Client,
  { prefix }: BucketGrant,
  pattern: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!isPattern(pattern)) return [pattern];
  const fixed = pattern.slice(0, pattern.search(/[*?[{]/));
  const all: string[] = [];
  for (let after: string | undefined; ; after = all.at(-1)) {
    signal.throwIfAborted();
    const { keys, isLast } = await client.list(fixed, after, 1_000);
    all.push(...keys);
    if (all.length > keysMax) throw new Fault("exhausted", "find files", { pattern, keysMax });
    if (isLast || keys.length === 0) break;
  }
  const found = all.filter((key) => key.startsWith(prefix) && matchesGlob(key, pattern));
  const above = foldersAbove(fixed).filter((folder) => folder.startsWith(prefix));
  return (await versionFiles(client, { all, above }, found)).toSorted();
}

/** `a/b/part-` lies in `a/` and `a/b/`. */
const foldersAbove = (fixed: string): readonly string[] =>
  fixed
    .split("/")
    .slice(0, -1)
    .map((_, i, steps) => `${steps.slice(0, i + 1).join("/")}/`)
    .slice(-8);

function bucketOf(name: string, { grants, asker }: Wanted): BucketGrant {
  const found = grants.find((one) => one.name === name && isFor(one, asker))?.s3;
  if (found) return found;
  throw new Fault("invalid", "read bucket", { grant: name, why: "it is not granted any more, or not on this node" });
}

/** As a path of this node, and as a text in a plan. */
function checkKey(key: string): void {
  const isOdd = /["\\\p{Cc}]/u.test(key) || key.split("/").some((step) => /^\.{0,2}$/.test(step) || step.length > 80);
  if (isOdd) throw new Fault("invalid", "find files", { key: key.slice(0, 200), why: "such a key cannot be a file" });
}

const fileName = (step: string): string => step.replaceAll(/[^A-Za-z0-9._=-]/gu, encodeURIComponent);

const idOf = ({ place, bytes }: SourceFile, need: Need): string =>
  createHash("sha256").update(`${place}\0${bytes}\0${need}`).digest("hex").slice(0, 32);
