/** Problem matchers: patterns that find errors in what tools print (CI-49). */
import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { z } from "zod";
import type { Annotation, AnnotationLevel } from "#doors/ci/run/report.ts";

const Pattern = z.object({
  regexp: z.string().max(4096),
  file: z.number().int().optional(),
  fromPath: z.number().int().optional(),
  line: z.number().int().optional(),
  column: z.number().int().optional(),
  severity: z.number().int().optional(),
  code: z.number().int().optional(),
  message: z.number().int().optional(),
  loop: z.boolean().optional(),
});

const Matcher = z.object({
  owner: z.string().min(1),
  severity: z.string().optional(),
  pattern: z.array(Pattern).min(1).max(10),
});

const File = z.object({ problemMatcher: z.array(Matcher).min(1).max(100) });

type Fields = { file?: string; line?: string; column?: string; severity?: string; code?: string; message?: string };

type Active = {
  readonly owner: string;
  readonly severity: string | undefined;
  readonly patterns: readonly { readonly shape: z.infer<typeof Pattern>; readonly expression: RegExp }[];
  /** How many patterns have matched, and what they found. */
  at: number;
  fields: Fields;
  strikes: number;
};

const fileBytesMax = 1024 * 1024;
const lineLengthMax = 8192;
const slowMs = 1000;
const strikesMax = 3;

export class Matchers {
  readonly #workspace: string;
  #active: Active[] = [];

  constructor(workspace: string) {
    this.#workspace = workspace;
  }

  /** From a file of matchers; one with the same owner takes the place of the former, later ones are asked first. */
  add(path: string): void {
    const absolute = isAbsolute(path) ? path : join(this.#workspace, path);
    if (statSync(absolute).size > fileBytesMax) throw new Error("the file is too large for problem matchers");
    const { problemMatcher } = File.parse(JSON.parse(readFileSync(absolute, "utf8").replace(/^\uFEFF/, "")));
    for (const { owner, severity, pattern } of problemMatcher) {
      const patterns = pattern.map((shape) => ({ shape, expression: new RegExp(shape.regexp) }));
      this.remove(owner);
      this.#active.unshift({ owner, severity, patterns, at: 0, fields: {}, strikes: 0 });
    }
  }

  remove(owner: string): void {
    this.#active = this.#active.filter((active) => active.owner.toLowerCase() !== owner.toLowerCase());
  }

  match(line: string): Annotation | undefined {
    if (this.#active.length === 0) return undefined;
    const text = withoutColours(line).slice(0, lineLengthMax);
    for (const active of this.#active) {
      const startedMs = performance.now();
      const fields = step(active, text);
      if (performance.now() - startedMs > slowMs) active.strikes += 1;
      if (active.strikes >= strikesMax) this.remove(active.owner);
      if (!fields) continue;
      for (const other of this.#active) if (other !== active) reset(other);
      return this.#annotation(active, fields);
    }
    return undefined;
  }

  #annotation(active: Active, { file, line, column, severity, code, message = "" }: Fields): Annotation {
    const path = file === undefined ? undefined : this.#inside(file);
    return {
      level: levelOf(severity ?? active.severity),
      message,
      ...(path !== undefined && { file: path }),
      ...(isNumber(line) && { line: Number(line) }),
      ...(isNumber(column) && { column: Number(column) }),
      ...(code !== undefined && { code }),
    };
  }

  /** Only files of the workspace are worth a place. */
  #inside(file: string): string | undefined {
    const path = relative(this.#workspace, resolve(this.#workspace, file));
    return path.startsWith("..") || isAbsolute(path) ? undefined : path;
  }
}

const isNumber = (text: string | undefined): boolean => text !== undefined && /^\d+$/.test(text);

function levelOf(severity: string | undefined): AnnotationLevel {
  const word = severity?.toLowerCase();
  return word === "warning" || word === "notice" ? word : "error";
}

/** The fields of a problem when the last pattern has matched. */
function step(active: Active, text: string): Fields | undefined {
  const last = active.patterns.length - 1;
  const pattern = active.patterns[active.at];
  const match = pattern && pattern.expression.exec(text);
  if (!pattern || !match) {
    if (active.at === 0) return undefined;
    reset(active);
    return step(active, text);
  }
  const fields = { ...active.fields, ...fieldsOf(pattern.shape, match) };
  if (active.at < last) {
    active.at += 1;
    active.fields = fields;
    return undefined;
  }
  if (!pattern.shape.loop) reset(active); // a loop tries its last pattern again, with what came before it
  return fields;
}

function reset(active: Active): void {
  active.at = 0;
  active.fields = {};
}

function fieldsOf(shape: z.infer<typeof Pattern>, match: RegExpExecArray): Fields {
  const fields: Fields = {};
  for (const name of ["file", "line", "column", "severity", "code", "message"] as const) {
    const group = shape[name];
    const value = group === undefined ? undefined : match[group];
    if (value !== undefined && value !== "") fields[name] = value;
  }
  return fields;
}

// oxlint-disable-next-line eslint/no-control-regex -- that is what colours are made of
const withoutColours = (text: string): string => text.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, "");
