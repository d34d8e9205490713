/**
 * Which labels an executor may offer. Labels direct work to executors, so some of them are promises to others: that a
 * sandbox is used, that a task runs on a pool's machines, that a node of this cluster runs it. An executor may not
 * claim those by itself.
 */
import type { Principal } from "#access/principal.ts";
import type { KindTable } from "#shard/door-kinds.ts";

/** By the name before the "=": offered only if the grant allows it. */
const guarded: ReadonlySet<string> = new Set(["node", "pool", "sandbox", "tenant"]);

/** Required by actions that name no pool: every executor serves it, unless its grant names pools or labels. */
const poolDefault = "pool=default";

/** Why this principal may not offer one of these labels, or undefined. Operators and nodes may offer any. */
export function refusedLabel(
  principal: Principal,
  offers: readonly string[],
  kinds: Pick<KindTable, "isNodeLabel">,
): string | undefined {
  if (principal.roles.has("operator")) return undefined;
  for (const label of offers) {
    if (kinds.isNodeLabel(label) && !principal.labels?.includes(label))
      return `${label} may be offered by nodes only, or by an executor whose grant names it (edge.identity)`;
    if (!mayOffer(principal, label))
      return `${principal.name} was not given the label ${label}: an operator lists it in its grant (edge.identity)`;
  }
  return undefined;
}

function mayOffer({ pools, labels }: Principal, label: string): boolean {
  if (labels?.some((pattern) => fits(pattern, label))) return true;
  if (label.startsWith("pool=") && pools?.includes(label.slice("pool=".length))) return true;
  if (labels !== undefined) return false;
  if (label === poolDefault) return pools === undefined;
  return !guarded.has(label.slice(0, Math.max(0, label.indexOf("="))));
}

const fits = (pattern: string, label: string): boolean =>
  pattern.endsWith("*") ? label.startsWith(pattern.slice(0, -1)) : label === pattern;
