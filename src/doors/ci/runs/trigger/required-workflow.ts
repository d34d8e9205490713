/** Workflows that run for all repositories of an owner, beside their own: they come from one repository of it. Pure. */
import { z } from "zod";

export const RequiredWorkflow = z.strictObject({
  tenant: z.string().min(1).max(200).optional().describe("for whose repositories; left out: every tenant's"),
  owner: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}$/)
    .describe("for the repositories of this owner"),
  repository: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}\/[A-Za-z0-9._-]{1,100}$/)
    .describe("the repository, as owner/name, that has the workflow"),
  workflow: z
    .string()
    .regex(/^[^/]{1,200}\.ya?ml$/)
    .describe("the file's name below .github/workflows"),
  ref: z.string().min(1).max(255).optional().describe("a branch, tag or commit of it; left out: the default branch"),
});
export type RequiredWorkflow = z.output<typeof RequiredWorkflow>;

/** Its own workflows a repository runs anyway. */
export function requiredFor(
  all: readonly RequiredWorkflow[],
  { tenant, name }: { readonly tenant: string; readonly name: string },
): readonly RequiredWorkflow[] {
  const [owner = ""] = name.toLowerCase().split("/");
  return all.filter(
    (one) =>
      (one.tenant === undefined || one.tenant === tenant) &&
      one.owner.toLowerCase() === owner &&
      one.repository.toLowerCase() !== name.toLowerCase(),
  );
}
