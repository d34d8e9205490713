/** Where jobs may run besides what `runs-on` says in labels: groups of runners, and queues of the cluster. Pure. */
import { z } from "zod";

const groupPrefix = "group=";

/** CI-72: `organization/GPU runners` is the group `gpu-runners`. Tokens and configuration say who is in it. */
export const groupLabel = (group: string): string =>
  `${groupPrefix}${group
    .slice(group.indexOf("/") + 1)
    .trim()
    .toLowerCase()
    .replaceAll(/\s+/g, "-")}`;

export const groupsIn = (labels: readonly string[]): readonly string[] =>
  labels.flatMap((label) => (label.startsWith(groupPrefix) ? [label.slice(groupPrefix.length)] : []));

export const Queue = z.strictObject({
  tenant: z.string().min(1).max(200).optional().describe("whose runs; left out: every tenant's"),
  repository: z
    .string()
    .regex(/^[A-Za-z0-9._-]+\/(?:\*|[A-Za-z0-9._-]+)$/)
    .optional()
    .describe("of which repository: owner/name, or owner/* for all of an owner; left out: of all"),
  requires: z
    .array(z.string().regex(/^[^=\s]{1,100}=[^\s]{1,100}$/))
    .min(1)
    .max(20)
    .describe("labels that a worker must have, such as region=eu or pool=acme"),
});
export type Queue = z.output<typeof Queue>;

/** What all queues that a run belongs to ask for. */
export function queueLabels(queues: readonly Queue[], run: { readonly tenant: string; readonly repository: string }) {
  const name = run.repository.toLowerCase();
  const isOf = ({ tenant, repository }: Queue): boolean => {
    if (tenant !== undefined && tenant !== run.tenant) return false;
    const wanted = repository?.toLowerCase();
    return wanted === undefined || wanted === name || (wanted.endsWith("/*") && name.startsWith(wanted.slice(0, -1)));
  };
  return [...new Set(queues.filter(isOf).flatMap(({ requires }) => requires))].toSorted();
}
