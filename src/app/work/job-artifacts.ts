/**
 * Named files of a job, which its tasks put and get: a record for the name, a pinned blob for the bytes.
 *
 * JA1 A name of a job means one artifact, whole: its record is written when its bytes are pinned.
 * JA2 A tenant has so many names at most; those whose time has passed make way.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ClaimOf } from "#access/principal.ts";
import type { Spool } from "#blobs/spool.ts";
import type { BlobStore } from "#blobs/store.ts";
import { recordsOf, type Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Keeps } from "#retention/keeps.ts";

const Kept = z.object({
  digest: z.string(),
  sizeBytes: z.int(),
  task: z.string(),
  attempt: z.int(),
  putAtMs: z.number(),
  untilMs: z.number(),
});

export type JobArtifact = z.output<typeof Kept> & { readonly name: string };

export type JobArtifactPorts = {
  readonly records: Records;
  readonly blobs: BlobStore;
  readonly keeps: Pick<Keeps, "keep">;
  readonly spool: Spool;
  readonly clock: Pick<Clock, "wallMs">;
};

const artifactKind = "artifact";
const keptMs = 30 * 24 * 3_600_000;
const perTenantMax = 50_000;
const sweptAtOnce = 1_000;

export class JobArtifacts {
  readonly #ports: JobArtifactPorts;
  readonly #names;

  constructor(ports: JobArtifactPorts) {
    this.#ports = ports;
    const limits = { countMax: perTenantMax, bytesMax: perTenantMax * 1_024 };
    this.#names = recordsOf(ports.records, { kind: artifactKind, schema: Kept, limits });
  }

  async put({ tenant, job, task, attempt }: ClaimOf, name: string, parts: AsyncIterable<Uint8Array>) {
    const { blobs, spool, clock } = this.#ports;
    await using taken = await spool.take(parts, { tenant, principal: `task:${task}` });
    await blobs.write(taken.digest, taken.content());
    const putAtMs = clock.wallMs();
    await this.#keep(tenant, nameOf(job, name), taken.digest, putAtMs + keptMs);
    const sizeBytes = Number(taken.digest.slice(taken.digest.lastIndexOf("/") + 1));
    const value = { digest: taken.digest, sizeBytes, task, attempt, putAtMs, untilMs: putAtMs + keptMs };
    await this.#set(tenant, nameOf(job, name), value);
    return { ...value, name };
  }

  async #keep(tenant: string, name: string, digest: Digest, untilMs: number): Promise<void> {
    const [about, drops] = [`artifact ${name.slice(0, 300)}`, [{ kind: artifactKind, name }]];
    try {
      await this.#ports.keeps.keep({
        tenant,
        name: `artifact/${name}`,
        door: "",
        about,
        untilMs,
        digests: [digest],
        drops,
      });
    } catch (error) {
      if (!isFault(error, "not-found")) throw error;
      throw new Fault("unavailable", "keep an artifact", { why: "its bytes are gone: try again" });
    }
  }

  /** Undefined: there is none, or its time has passed. */
  async find(tenant: string, job: string, name: string): Promise<JobArtifact | undefined> {
    const found = await this.#names.read(tenant, nameOf(job, name));
    if (!found || found.value.untilMs <= this.#ports.clock.wallMs()) return undefined;
    return { ...found.value, name };
  }

  read = ({ digest }: JobArtifact): AsyncIterable<Uint8Array> => this.#ports.blobs.read(digest);

  async list(tenant: string, job: string, page: { readonly limit: number; readonly cursor?: string | undefined }) {
    const prefix = nameOf(job, "");
    const { records, cursor } = await this.#names.list({ tenant, prefix, ...page });
    const nowMs = this.#ports.clock.wallMs();
    const artifacts = records.flatMap(({ name, value }): JobArtifact[] =>
      value.untilMs > nowMs ? [{ ...value, name: name.slice(prefix.length) }] : [],
    );
    return { artifacts, cursor };
  }

  async #set(tenant: string, name: string, value: z.output<typeof Kept>): Promise<void> {
    try {
      await this.#put(tenant, name, value);
    } catch (error) {
      if (!isFault(error, "exhausted") || !(await this.#sweep(tenant))) throw error;
      await this.#put(tenant, name, value);
    }
  }

  async #put(tenant: string, name: string, value: z.output<typeof Kept>): Promise<void> {
    const { created } = await this.#names.create(tenant, name, value);
    if (!created) await this.#names.update(tenant, name, () => value);
  }

  /** JA2: whether one made way. */
  async #sweep(tenant: string): Promise<boolean> {
    const nowMs = this.#ports.clock.wallMs();
    let swept = 0;
    for (let cursor: string | undefined; swept < sweptAtOnce;) {
      const page = await this.#names.list({ tenant, limit: 500, cursor });
      const old = page.records.filter(({ value }: Typed<z.output<typeof Kept>>) => value.untilMs <= nowMs);
      for (const { name, version } of old) if (await this.#names.remove(tenant, name, version)) swept += 1;
      ({ cursor } = page);
      if (cursor === undefined) break;
    }
    return swept > 0;
  }
}

const nameOf = (job: string, name: string): string => `${job}/${name}`;
