/** What a scalar means: the core schema of YAML 1.2, in the reading of the reference (CI-34). */
import type { Scalar } from "./node.ts";

const prefix = "tag:yaml.org,2002:";

const matchers: Readonly<Record<string, (text: string) => Scalar | undefined>> = {
  null: (text) => (["", "null", "Null", "NULL", "~"].includes(text) ? null : undefined),
  bool: (text) => {
    if (["true", "True", "TRUE"].includes(text)) return true;
    return ["false", "False", "FALSE"].includes(text) ? false : undefined;
  },
  int: (text) => {
    if (/^[-+]?\d+$/.test(text)) return Number(text) + 0;
    if (/^0x[\da-fA-F]+$/.test(text) || /^0o[0-7]+$/.test(text)) return Number(text);
    return undefined;
  },
  float: (text) => {
    if (/^[-+]?\.(inf|Inf|INF)$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
    if (/^\.(nan|NaN|NAN)$/.test(text)) return Number.NaN;
    return /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(text) ? Number(text) : undefined;
  },
};

export function plainScalar(text: string): Scalar {
  for (const matcher of Object.values(matchers)) {
    const value = matcher(text);
    if (value !== undefined) return value;
  }
  return text;
}

export type Tagged = { readonly value: Scalar } | { readonly problem: "tag" | "value" | "style" };

export function taggedScalar(tag: string, text: string, isPlain: boolean): Tagged {
  if (tag === `${prefix}str`) return { value: text };
  const matcher = tag.startsWith(prefix) ? matchers[tag.slice(prefix.length)] : undefined;
  if (!matcher) return { problem: "tag" };
  if (!isPlain) return { problem: "style" };
  const value = matcher(text);
  return value === undefined ? { problem: "value" } : { value };
}

export const collectionTags: ReadonlySet<string> = new Set([`${prefix}map`, `${prefix}seq`]);
