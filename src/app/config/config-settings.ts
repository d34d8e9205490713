/**
 * Every setting by its path, from the schema alone: what it is called in a file, behind `--set` and in the environment,
 * and what its text becomes.
 */
import type { z } from "zod";
import { schemaOf, variantsOf, type JsonSchema } from "#door/json-schema.ts";

export type Setting = {
  /** `worker.slots`: in a file, and behind `--set`. */
  readonly path: string;
  /** `MILLRACE_WORKER_SLOTS`; undefined for a whole section. */
  readonly variable: string | undefined;
  /** Its text is taken as it is; others are read as YAML. */
  readonly isText: boolean;
  /** Its text may be `a,b` for `[a, b]`. */
  readonly isTextList: boolean;
  /** What a part that is left out is taken to be, so that one of its settings can be given alone. */
  readonly fallback: Readonly<Record<string, unknown>> | undefined;
};

export const variableOf = (path: string): string =>
  `MILLRACE_${path
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(".", "_")
    .toUpperCase()}`;

export function settingsOf(schema: z.ZodType): ReadonlyMap<string, Setting> {
  const found = new Map<string, Setting>();
  const walk = (places: readonly JsonSchema[], above: string): void => {
    const names = new Set(places.flatMap(({ properties }) => Object.keys(properties ?? {})));
    for (const name of names) {
      const path = above === "" ? name : `${above}.${name}`;
      const here = places.flatMap(({ properties }) => properties?.[name] ?? []).flatMap(variantsOf);
      found.set(path, settingAt(path, here));
      walk(here, path);
    }
  };
  walk(variantsOf(schemaOf(schema)), "");
  return found;
}

function settingAt(path: string, here: readonly JsonSchema[]): Setting {
  const typed = here.filter(({ oneOf, anyOf }) => !oneOf && !anyOf);
  const isText = typed.length > 0 && typed.every(({ type }) => type === "string");
  const isTextList = typed.length > 0 && typed.every(({ type, items }) => type === "array" && items?.type === "string");
  const fallback = here.map(({ default: value }) => value).find((value) => typeof value === "object" && value !== null);
  return {
    path,
    variable: path.includes(".") ? variableOf(path) : undefined,
    isText,
    isTextList,
    fallback: Array.isArray(fallback) ? undefined : (fallback as Setting["fallback"]),
  };
}
