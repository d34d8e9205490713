/** Reads a YAML or JSON file against a strict schema; errors name the path and the line. */
import { readFile } from "node:fs/promises";
import { isMap, LineCounter, parseDocument, type Document } from "yaml";
import type { z } from "zod";
import { Fault } from "#base/fault.ts";
import { nearest } from "#base/nearest.ts";
import { schemaOf, variantsOf, type JsonSchema } from "./json-schema.ts";

/** Settings that are put over the file before it is checked. */
export type Overlay = {
  readonly put: (value: unknown) => unknown;
  /** Where the value at a path came from, if not from the file. */
  readonly where: (path: readonly PropertyKey[]) => string | undefined;
};

type CheckOptions = { readonly doing: string; readonly file?: string | undefined; readonly overlay?: Overlay };

const sizeBytesMax = 4 * 1024 * 1024;

export async function readChecked<S extends z.ZodType>(
  path: string,
  schema: S,
  doing: string,
  overlay?: Overlay,
): Promise<z.output<S>> {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new Fault(
      cause.code === "ENOENT" ? "not-found" : "unavailable",
      doing,
      { file: path, errno: cause.code },
      cause,
    );
  });
  return checkText(text, schema, { doing, file: path, ...(overlay && { overlay }) });
}

export function checkText<S extends z.ZodType>(
  text: string,
  schema: S,
  { doing, file, overlay = noOverlay }: CheckOptions,
): z.output<S> {
  if (text.length > sizeBytesMax)
    throw new Fault("exhausted", doing, { file, length: text.length, lengthMax: sizeBytesMax });
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [wrong] = document.errors;
  if (wrong)
    throw new Fault(
      "invalid",
      doing,
      { file, line: lines.linePos(wrong.pos[0]).line, why: firstLine(wrong.message) },
      wrong,
    );
  // The parser's limit refuses exponential aliases.
  const parsed = schema.safeParse(overlay.put(document.toJS({ maxAliasCount: 100 }) ?? {}));
  if (parsed.success) return parsed.data;
  const locationOf = (path: readonly PropertyKey[]): string => {
    const elsewhere = overlay.where(path);
    return elsewhere === undefined ? at(path, document, lines) : `${path.map(String).join(".")} (${elsewhere})`;
  };
  const problems = parsed.error.issues.slice(0, 10).map((issue) => describe(issue, locationOf, schema));
  throw new Fault("invalid", doing, { file, why: problems.join("; ") }, parsed.error);
}

const noOverlay: Overlay = { put: (value) => value, where: () => undefined };

type LocationOf = (path: readonly PropertyKey[]) => string;

function describe(issue: z.core.$ZodIssue, locationOf: LocationOf, schema: z.ZodType): string {
  if (issue.code === "unrecognized_keys") {
    const keys = knownKeys(schema, issue.path);
    return issue.keys
      .map((key) => {
        const meant = nearest(key, keys);
        const hint = meant === undefined ? `known settings are ${keys.join(", ")}` : `did you mean ${meant}?`;
        return `${locationOf([...issue.path, key])}: there is no such setting (${hint})`;
      })
      .join("; ");
  }
  return `${locationOf(issue.path)}: ${firstLine(issue.message)}`;
}

/** `node.listen (line 4)`; the nearest parent's line if the value itself is missing. */
function at(path: readonly PropertyKey[], document: Document, lines: LineCounter): string {
  const shown = path.map(String).join(".") || "the file";
  for (let length = path.length; length > 0; length -= 1) {
    const offset = offsetOf(path.slice(0, length), document);
    if (offset !== undefined) return `${shown} (line ${lines.linePos(offset).line})`;
  }
  return shown;
}

function offsetOf(path: readonly PropertyKey[], document: Document): number | undefined {
  const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  const last = path.at(-1);
  if (isMap(parent)) {
    const pair = parent.items.find(({ key }) => String(key) === String(last));
    const key = pair?.key as { range?: readonly number[] } | undefined;
    return key?.range?.[0];
  }
  const node = document.getIn(path, true) as { range?: readonly number[] } | undefined;
  return node?.range?.[0];
}

/** The names that the schema knows at this path, for a suggestion. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let places: readonly JsonSchema[] = [schemaOf(schema)];
  for (const step of path)
    places = places.flatMap(variantsOf).flatMap((place) => {
      const next = typeof step === "number" ? place.items : place.properties?.[String(step)];
      return next ? [next] : [];
    });
  return [...new Set(places.flatMap(variantsOf).flatMap(({ properties }) => Object.keys(properties ?? {})))];
}

const firstLine = (text: string): string => text.split("\n")[0] ?? text;
