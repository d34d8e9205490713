/** What people say about environments of repositories, as records: who reviews, how long to wait, what may deploy. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { environmentKey } from "#doors/ci/secrets/scope.ts";
import type { Rules } from "./gate.ts";

export const EnvironmentRules = z.strictObject({
  reviewers: z
    .array(z.string().min(1).max(200))
    .max(50)
    .default([])
    .describe("Names of the people who may review; none: all who may approve in the tenant."),
  approvals: z
    .int()
    .min(0)
    .max(10)
    .optional()
    .describe("How many people must approve; left out: one where reviewers are named, else none."),
  waitMinutes: z
    .number()
    .min(0)
    .max(43_200)
    .default(0)
    .describe("How long a job waits at least, from when it could run."),
  branches: z
    .array(z.string().min(1).max(200))
    .max(100)
    .default([])
    .describe("Patterns of branches and tags that may deploy; none: all."),
  preventSelfReview: z.boolean().default(false).describe("Who started a run cannot approve it."),
  exclusive: z.boolean().default(false).describe("One job at a time deploys to it; others wait in their order."),
});
export type EnvironmentRules = z.output<typeof EnvironmentRules>;

const Kept = z.object({
  repository: z.string(),
  environment: z.string(),
  rules: EnvironmentRules,
  by: z.string(),
  atMs: z.number(),
});
export type KeptEnvironment = z.output<typeof Kept>;

const minuteMs = 60_000;

export class Environments {
  readonly #kept;

  constructor(records: Records) {
    const limits = { countMax: 2_000, bytesMax: 16 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.environment", schema: Kept, limits });
  }

  async set(tenant: string, value: KeptEnvironment): Promise<void> {
    const { created } = await this.#kept.create(tenant, keyOf(value), value);
    if (!created) await this.#kept.update(tenant, keyOf(value), () => value);
  }

  async remove(tenant: string, of: Pick<KeptEnvironment, "repository" | "environment">): Promise<boolean> {
    return await this.#kept.remove(tenant, keyOf(of));
  }

  async list(tenant: string, repository: string): Promise<readonly KeptEnvironment[]> {
    const page = await this.#kept.list({ tenant, prefix: `${repository.toLowerCase()}/`, limit: 1_000 });
    return page.records.map(({ value }) => value);
  }

  /** One without rules lets everything in. */
  async rulesOf(tenant: string, repository: string, environment: string): Promise<Rules & { exclusive: boolean }> {
    const found = await this.#kept.read(tenant, keyOf({ repository, environment }));
    const rules = found?.value.rules ?? EnvironmentRules.parse({});
    return {
      environment,
      reviewers: rules.reviewers,
      approvals: rules.approvals ?? (rules.reviewers.length > 0 ? 1 : 0),
      waitMs: rules.waitMinutes * minuteMs,
      branches: rules.branches,
      preventsSelfReview: rules.preventSelfReview,
      exclusive: rules.exclusive,
    };
  }
}

const keyOf = ({ repository, environment }: Pick<KeptEnvironment, "repository" | "environment">): string =>
  `${repository.toLowerCase()}/${environmentKey(environment)}`;
