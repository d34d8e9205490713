/**
 * What was deployed where. A record says that a job was let in; how it went is what the engine recorded of the job,
 * under the token of its claim, so an attempt that was replaced cannot change it.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { isFault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { environmentKey } from "#doors/ci/secrets/scope.ts";

const Deployment = z.object({
  repository: z.string(),
  environment: z.string(),
  run: z.string(),
  stage: z.string(),
  ref: z.string(),
  sha: z.string(),
  by: z.string(),
  atMs: z.number(),
});
export type Deployment = z.output<typeof Deployment>;

const deploymentsMax = 10_000;
const removedAtOnce = 100;

export class Deployments {
  readonly #kept;

  constructor(records: Records) {
    const limits = { countMax: deploymentsMax, bytesMax: 16 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.deployment", schema: Deployment, limits });
  }

  /** A stage that is planned again is the same deployment. */
  async begin(tenant: string, deployment: Deployment): Promise<void> {
    try {
      await this.#kept.create(tenant, nameOf(deployment), deployment);
    } catch (error) {
      if (!isFault(error) || !(await this.#forget(tenant))) throw error;
      await this.#kept.create(tenant, nameOf(deployment), deployment);
    }
  }

  /** The newest first. */
  async list(
    tenant: string,
    { repository, environment }: { readonly repository: string; readonly environment?: string | undefined },
    limit: number,
  ): Promise<readonly Deployment[]> {
    const prefix = environment === undefined ? `${repository.toLowerCase()}/` : placeOf({ repository, environment });
    const page = await this.#kept.list({ tenant, prefix, order: "newest", limit });
    return page.records.map(({ value }) => value);
  }

  /** The oldest by name are as good as any: a tenant that has so many looks at the last few. */
  async #forget(tenant: string): Promise<boolean> {
    const all = await this.#kept.list({ tenant, limit: 1_000 });
    const oldest = all.records.toSorted((a, b) => a.value.atMs - b.value.atMs).slice(0, removedAtOnce);
    for (const { name, version } of oldest) await this.#kept.remove(tenant, name, version);
    return oldest.length > 0;
  }
}

const placeOf = ({ repository, environment }: Pick<Deployment, "repository" | "environment">): string =>
  `${repository.toLowerCase()}/${environmentKey(environment)}/`;

const nameOf = ({ run, stage, ...of }: Deployment): string =>
  `${placeOf(of)}${createHash("sha256").update(`${run} ${stage}`).digest("hex").slice(0, 32)}`;
