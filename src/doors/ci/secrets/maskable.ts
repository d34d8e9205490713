/** What is told to who sets a secret: what of it logs would show all the same. Pure. */
import { maskLengthMin } from "#doors/ci/run/printed/secret-forms.ts";

export function maskWarnings(value: string): readonly string[] {
  const warnings: string[] = [];
  if (value.trim().length < maskLengthMin)
    warnings.push(`it has fewer than ${maskLengthMin} characters: logs show it, because it stands in every text`);
  if (/^\s*[[{]/.test(value)) warnings.push(...aboutJson(value));
  else if (isAnyShort(value.split(/\r\n|\r|\n/)))
    warnings.push(`lines of fewer than ${maskLengthMin} characters are not masked when they stand alone`);
  if (/[\r\n]$/.test(value)) warnings.push("it ends with a line break, which is part of the value");
  return warnings;
}

const isAnyShort = (parts: readonly string[]): boolean =>
  parts.length > 1 && parts.some((part) => part.trim() !== "" && part.trim().length < maskLengthMin);

function aboutJson(value: string): readonly string[] {
  const leaves: string[] = [];
  try {
    JSON.parse(value, (_key, leaf: unknown) => {
      if (typeof leaf === "string" || typeof leaf === "number") leaves.push(String(leaf));
      return leaf;
    });
  } catch {
    return [];
  }
  const short = leaves.filter((leaf) => leaf.length < maskLengthMin).length;
  return [
    `it is JSON: each of its ${leaves.length} values is masked by itself, names of fields are not`,
    ...(short > 0 ? [`${short} of its values have fewer than ${maskLengthMin} characters: logs show them`] : []),
  ];
}
