/**
 * Artifacts of a run: named, immutable, kept until their time.
 *
 * SV4 A name means one artifact of a run. Only what was never finished, or what an earlier attempt at the same job
 *     left, makes way for another.
 * SV5 An artifact is listed and served only when all its bytes are there and have the digest that is shown.
 */
import { randomInt } from "node:crypto";
import { Problem } from "#http/problem.ts";
import { checkArtifactName, expiryOf } from "./artifact-names.ts";
import type { BlockUploads, UploadPorts, UploadRef } from "#doors/ci/services/block-uploads.ts";
import type { Keeps } from "#retention/keeps.ts";
import { hashOf, type Content } from "#doors/ci/services/content.ts";
import type { CheckName } from "#doors/ci/secrets/open-names.ts";
import type { JobIdentity } from "#doors/ci/services/job-token.ts";
import { nameLimits } from "#doors/ci/services/limits.ts";
import { documentOf, everyName, type NameRecord } from "#doors/ci/services/names.ts";

export type Artifact = {
  readonly id: number;
  readonly run: string;
  readonly repository: string;
  readonly task: string;
  readonly claim: number;
  readonly name: string;
  readonly mimeType: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** Until it is finished, where its bytes go. */
  readonly upload?: string;
  /** Since it is finished. */
  readonly sealed?: { readonly sha256: string; readonly content: Content };
};

export type SealedArtifact = Artifact & Required<Pick<Artifact, "sealed">>;

export type ArtifactPorts = UploadPorts & {
  readonly uploads: BlockUploads;
  readonly keeps: ArtifactKeeps;
  readonly checkName: CheckName;
};

/** Keeps the bytes of artifacts until their time, and then removes their names. */
export type ArtifactKeeps = Pick<Keeps, "keep" | "drop">;

type Attempt = Pick<JobIdentity, "tenant" | "run" | "task" | "claim" | "repository">;

const artifactKind = "ci.artifact";
const idKind = "ci.artifact-id";

const searchedMax = 20_000;
/** Numbers that clients read as such. */
const idMax = 2 ** 47;

export class Artifacts {
  readonly #ports: ArtifactPorts;

  constructor(ports: ArtifactPorts) {
    this.#ports = ports;
  }

  async create(
    attempt: Attempt,
    { name, expiresAt, mimeType }: { readonly name: string; readonly expiresAt?: string; readonly mimeType: string },
  ): Promise<UploadRef> {
    checkArtifactName(name);
    await this.#ports.checkName(attempt, "name", name);
    const { clock, limits, uploads } = this.#ports;
    const { tenant, run, task, claim, repository } = attempt;
    const nowMs = clock.wallMs();
    const expiresAtMs = expiryOf(expiresAt, nowMs, limits);
    const before = await this.#read(tenant, run, name);
    if (before && !mayReplace(before.artifact, attempt, nowMs, limits.uploadMs)) throw taken();
    if (!before && (await this.#count(tenant, run)) >= limits.artifactsPerRunMax)
      throw new Problem(429, `insufficient usage: a run has at most ${limits.artifactsPerRunMax} artifacts`);
    const upload = await uploads.begin(tenant, limits.artifactBytesMax);
    const id = before?.artifact.id ?? (await this.#newId(tenant, run, name));
    const artifact: Artifact = {
      id,
      run,
      task,
      claim,
      repository,
      name,
      mimeType,
      expiresAtMs,
      createdAtMs: nowMs,
      upload: upload.id,
    };
    if (!(await this.#put(tenant, artifact, before?.record))) throw taken();
    if (before?.artifact.upload !== undefined) await uploads.end({ tenant, id: before.artifact.upload });
    return upload;
  }

  /** Checks what was uploaded against what the client says that it sent. */
  async finalize(
    { tenant, run, task, claim }: Attempt,
    { name, sizeBytes, hash }: { readonly name: string; readonly sizeBytes: number; readonly hash: string | undefined },
  ): Promise<Artifact> {
    const found = await this.#read(tenant, run, name);
    if (!found || found.artifact.task !== task || found.artifact.claim !== claim)
      throw new Problem(404, "this attempt has not created an artifact with this name");
    const { artifact, record } = found;
    if (artifact.sealed) return sameAgain(artifact as SealedArtifact, sizeBytes);
    const upload = { tenant, id: artifact.upload ?? "" };
    const content = await this.#ports.uploads.content(upload);
    if (!content)
      throw new Problem(400, "the artifact's bytes have not been uploaded, or their list of blocks is missing");
    if (content.sizeBytes !== sizeBytes)
      throw new Problem(400, `the artifact has ${content.sizeBytes} bytes, and the call says ${sizeBytes}`);
    const { blobs } = this.#ports.store.forTenant(tenant);
    await this.#keep(tenant, artifact, content);
    const sha256 = await hashOf(blobs, content);
    if (hash !== undefined && hash !== "" && hash !== `sha256:${sha256}`)
      throw new Problem(400, `the artifact's bytes are sha256:${sha256}, and the call says ${hash.slice(0, 80)}`);
    const { upload: _upload, ...rest } = artifact;
    const sealed: Artifact = { ...rest, sealed: { sha256, content } };
    if (!(await this.#put(tenant, sealed, record))) throw new Problem(409, "another call changed this artifact");
    await this.#ports.uploads.end(upload);
    return sealed;
  }

  async #keep(tenant: string, { id, run, name, expiresAtMs }: Artifact, { parts }: Content): Promise<void> {
    await this.#ports.keeps.keep({
      tenant,
      name: keepName(run, name),
      door: "ci",
      about: `artifact ${name} of run ${run}`,
      untilMs: Math.max(expiresAtMs, this.#ports.clock.wallMs() + 1),
      ...(typeof parts === "string" ? { lists: [parts] } : { digests: [...parts] }),
      drops: [
        { kind: artifactKind, name: `${run}/${name}` },
        { kind: idKind, name: String(id) },
      ],
    });
  }

  /** The finished ones of a run, the newest first. */
  async list(tenant: string, run: string): Promise<readonly SealedArtifact[]> {
    const found: SealedArtifact[] = [];
    const nowMs = this.#ports.clock.wallMs();
    const query = { tenant, kind: artifactKind, prefix: `${run}/`, order: "newest" } as const;
    for await (const record of everyName(this.#ports.names, query)) {
      const artifact = documentOf<Artifact>(record);
      if (artifact.expiresAtMs <= nowMs) await this.#forget(tenant, artifact, record);
      else if (isSealed(artifact)) found.push(artifact);
    }
    return found;
  }

  /** Of all runs, the newest first. Looks at so many names and no more. */
  async search(
    tenant: string,
    {
      text,
      repository,
      limit,
    }: { readonly text: string; readonly repository?: string | undefined; readonly limit: number },
  ): Promise<{ readonly found: readonly SealedArtifact[]; readonly isCut: boolean }> {
    const found: SealedArtifact[] = [];
    const nowMs = this.#ports.clock.wallMs();
    const [wanted, of] = [text.toLowerCase(), repository?.toLowerCase()];
    let looked = 0;
    for await (const record of everyName(this.#ports.names, { tenant, kind: artifactKind, order: "newest" })) {
      looked += 1;
      if (looked > searchedMax) return { found, isCut: true };
      const artifact = documentOf<Artifact>(record);
      const isOf = of === undefined || artifact.repository.toLowerCase() === of;
      if (!isOf || !artifact.name.toLowerCase().includes(wanted)) continue;
      if (!isSealed(artifact) || artifact.expiresAtMs <= nowMs) continue;
      if (found.length >= limit) return { found, isCut: true };
      found.push(artifact);
    }
    return { found, isCut: false };
  }

  async find(tenant: string, run: string, name: string): Promise<SealedArtifact | undefined> {
    const found = await this.#read(tenant, run, name);
    if (!found || !isSealed(found.artifact) || found.artifact.expiresAtMs <= this.#ports.clock.wallMs())
      return undefined;
    return found.artifact;
  }

  async byId(tenant: string, id: string): Promise<SealedArtifact | undefined> {
    if (!/^\d{1,15}$/.test(id)) return undefined;
    const record = await this.#ports.names.read({ tenant, kind: idKind, name: id });
    if (!record) return undefined;
    const { run, name } = documentOf<{ readonly run: string; readonly name: string }>(record);
    return await this.find(tenant, run, name);
  }

  /** Its id; undefined: there is none. */
  async remove(tenant: string, run: string, name: string): Promise<number | undefined> {
    const found = await this.#read(tenant, run, name);
    if (!found || !isSealed(found.artifact)) return undefined;
    return (await this.#forget(tenant, found.artifact, found.record)) ? found.artifact.id : undefined;
  }

  async #read(
    tenant: string,
    run: string,
    name: string,
  ): Promise<{ readonly artifact: Artifact; readonly record: NameRecord } | undefined> {
    checkArtifactName(name);
    const record = await this.#ports.names.read({ tenant, kind: artifactKind, name: `${run}/${name}` });
    return record && { artifact: documentOf<Artifact>(record), record };
  }

  async #put(tenant: string, artifact: Artifact, before: NameRecord | undefined): Promise<boolean> {
    const { names } = this.#ports;
    const id = { tenant, kind: artifactKind, name: `${artifact.run}/${artifact.name}` };
    const text = JSON.stringify(artifact);
    if (before) return (await names.replace(id, before.version, text, nameLimits)) !== undefined;
    return (await names.create(id, text, nameLimits)).created;
  }

  async #forget(tenant: string, { id, run, name }: Artifact, { version }: NameRecord): Promise<boolean> {
    const { names } = this.#ports;
    const isGone = await names.remove({ tenant, kind: artifactKind, name: `${run}/${name}` }, version);
    if (isGone) await this.#ports.keeps.drop(tenant, keepName(run, name));
    const byId = { tenant, kind: idKind, name: String(id) };
    const record = isGone ? await names.read(byId) : undefined;
    if (record) await names.remove(byId, record.version);
    return isGone;
  }

  async #newId(tenant: string, run: string, name: string): Promise<number> {
    const document = JSON.stringify({ run, name });
    for (;;) {
      const id = randomInt(1, idMax);
      const { created } = await this.#ports.names.create(
        { tenant, kind: idKind, name: String(id) },
        document,
        nameLimits,
      );
      if (created) return id;
    }
  }

  async #count(tenant: string, run: string): Promise<number> {
    const { artifactsPerRunMax } = this.#ports.limits;
    const query = { tenant, kind: artifactKind, prefix: `${run}/`, limit: artifactsPerRunMax };
    return (await this.#ports.names.list(query)).records.length;
  }
}

const keepName = (run: string, name: string): string => `ci.artifact/${run}/${name}`;

const isSealed = (artifact: Artifact): artifact is SealedArtifact => artifact.sealed !== undefined;

/** SV4 */
function mayReplace(before: Artifact, { task, claim }: Attempt, nowMs: number, uploadMs: number): boolean {
  if (before.expiresAtMs <= nowMs) return true;
  if (!before.sealed && before.createdAtMs + uploadMs <= nowMs) return true;
  if (before.task !== task) return false;
  return before.sealed ? before.claim < claim : before.claim <= claim;
}

/** A client that did not get the first answer asks again. */
function sameAgain(artifact: SealedArtifact, sizeBytes: number): Artifact {
  if (artifact.sealed.content.sizeBytes === sizeBytes) return artifact;
  throw taken();
}

const taken = (): Problem => new Problem(409, "an artifact with this name already exists on the workflow run");
