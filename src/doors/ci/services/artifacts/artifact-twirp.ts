/** The artifact service as `@actions/artifact` calls it. */
import { z } from "zod";
import { Problem } from "#http/problem.ts";
import type { Artifacts, SealedArtifact } from "./artifacts.ts";
import type { JobIdentity } from "#doors/ci/services/job-token.ts";
import { Int64, OptionalText, Text, twirpMethod, type TwirpMethod } from "#doors/ci/services/twirp.ts";
import type { Signed } from "#doors/ci/services/signed-address.ts";

export type ArtifactTwirpPorts = {
  readonly artifacts: Artifacts;
  readonly sign: (origin: string, signed: Signed) => Promise<string>;
  /** Called with each finished artifact, before its job is told. */
  readonly finished?: ((job: JobIdentity, artifact: SealedArtifact) => Promise<void>) | undefined;
};

const ids = { workflow_run_backend_id: Text, workflow_job_run_backend_id: Text };
const zip = "application/zip";

/** Version 4 is a zip; 7 is a file as it is, with its type. */
const Create = z.object({
  ...ids,
  name: Text,
  expires_at: OptionalText,
  version: z.number().int().optional(),
  mime_type: OptionalText,
});
const Finalize = z.object({ ...ids, name: Text, size: Int64, hash: OptionalText });
const List = z.object({ ...ids, name_filter: OptionalText, id_filter: Int64.nullish() });
const Named = z.object({ ...ids, name: Text });

export function artifactMethods({
  artifacts,
  sign,
  finished,
}: ArtifactTwirpPorts): Readonly<Record<string, TwirpMethod>> {
  return {
    CreateArtifact: twirpMethod(Create, async ({ job, origin }, given) => {
      ofRun(job, given);
      const { name, expires_at: expiresAt, mime_type: mimeType = zip } = given;
      if (!/^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:;.{0,200})?$/.test(mimeType))
        throw new Problem(400, "mime_type: not valid");
      const { tenant, id } = await artifacts.create(job, {
        name,
        mimeType,
        ...(expiresAt !== undefined && { expiresAt }),
      });
      return {
        ok: true,
        signed_upload_url: await sign(origin, { does: "upload", tenant, id, fileName: fileName(name, mimeType) }),
      };
    }),
    FinalizeArtifact: twirpMethod(Finalize, async ({ job }, given) => {
      ofRun(job, given);
      const made = await artifacts.finalize(job, { name: given.name, sizeBytes: given.size, hash: given.hash });
      if (made.sealed) await finished?.(job, { ...made, sealed: made.sealed });
      return { ok: true, artifact_id: String(made.id) };
    }),
    ListArtifacts: twirpMethod(List, async ({ job }, given) => {
      ofRun(job, given);
      const all = await artifacts.list(job.tenant, job.run);
      const { name_filter: name, id_filter: id } = given;
      const wanted = all.filter((one) => (name === undefined || one.name === name) && (id ?? one.id) === one.id);
      return { artifacts: wanted.map(shown) };
    }),
    GetSignedArtifactURL: twirpMethod(Named, async ({ job, origin }, given) => {
      ofRun(job, given);
      const found = await artifacts.find(job.tenant, job.run, given.name);
      if (!found) throw missing();
      return { signed_url: await sign(origin, downloadOf(job.tenant, found)) };
    }),
    DeleteArtifact: twirpMethod(Named, async ({ job }, given) => {
      ofRun(job, given);
      const id = await artifacts.remove(job.tenant, job.run, given.name);
      if (id === undefined) throw missing();
      return { ok: true, artifact_id: String(id) };
    }),
  };
}

/** A job reads and writes artifacts of its own run; those of others are read over REST. */
function ofRun(
  { run }: JobIdentity,
  { workflow_run_backend_id: requestedRun }: { readonly workflow_run_backend_id: string },
): void {
  if (requestedRun !== run) throw new Problem(403, "the token is for another run");
}

const missing = (): Problem => new Problem(404, "there is no artifact with this name");

export const fileName = (name: string, mimeType: string): string => (mimeType === zip ? `${name}.zip` : name);

export const downloadOf = (tenant: string, { id, name, mimeType }: SealedArtifact): Signed => ({
  does: "download",
  tenant,
  id: `artifact.${id}`,
  fileName: fileName(name, mimeType),
});

const shown = ({ run, task, id, name, createdAtMs, sealed: { sha256, content } }: SealedArtifact) => ({
  workflow_run_backend_id: run,
  workflow_job_run_backend_id: task,
  database_id: String(id),
  name,
  size: String(content.sizeBytes),
  created_at: new Date(createdAtMs).toISOString(),
  digest: `sha256:${sha256}`,
});
