/**
 * All settings by their paths, derived from the schema: the name of each in a file, after `--set` and in the
 * environment, and how its text is parsed.
 */
import type { z } from "zod";
import { schemaOf, variantsOf, type JsonSchema } from "#door/json-schema.ts";

export type Setting = {
  /** `worker.slots`: in a file, and after `--set`. */
  readonly path: string;
  /** `MILLRACE_WORKER_SLOTS`; undefined for a whole section. */
  readonly variable: string | undefined;
  /** Its text is taken unchanged; others are parsed as YAML. */
  readonly isText: boolean;
  /** Its text may be `a,b` for `[a, b]`. */
  readonly isTextList: boolean;
  /** The default of a section that is left out, so that one of its settings can be given alone. */
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
