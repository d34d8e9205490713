/** What a worker that registered offers: what its registration says, and what of this machine it allows. Pure. */
import { arch, platform } from "node:os";

export const ownLabels = (): readonly string[] => [`os=${platform()}`, `arch=${arch()}`];

type Allowed = { readonly pools: readonly string[]; readonly labels: readonly string[] };

/** Throws nothing: a label that is not allowed is left out, and the node would refuse it anyway. */
export function labelsRegistered(
  { pools, labels }: Allowed,
  wanted: readonly string[],
  ofDoors: readonly string[],
): readonly string[] {
  const fixed = labels.filter((label) => !label.endsWith("*"));
  const isAllowed = (label: string): boolean =>
    labels.some((each) => (each.endsWith("*") ? label.startsWith(each.slice(0, -1)) : each === label));
  const doors = ofDoors.filter(isAllowed);
  const notOfDoors = fixed.filter((label) => !label.startsWith("door="));
  const here = [...ownLabels(), ...wanted].filter(isAllowed);
  return [...new Set([...here, ...pools.map((pool) => `pool=${pool}`), ...doors, ...notOfDoors])];
}
