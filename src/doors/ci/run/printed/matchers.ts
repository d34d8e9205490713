/** Problem matchers: patterns that find errors in what tools print (CI-49). */
import { readFileSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { z } from "zod";
import type { Annotation, AnnotationLevel } from "#doors/ci/run/report.ts";
import { PatternTooSlow, SafeExpression } from "./safe-expression.ts";

const group = z.int().nonnegative().optional();
const Pattern = z.object({
  regexp: z.string().max(4096),
  file: group,
  fromPath: group,
  line: group,
  column: group,
  severity: group,
  code: group,
  message: group,
  loop: z.boolean().optional(),
});

const Matcher = z.object({
  owner: z.string().min(1),
  severity: z.string().optional(),
  fromPath: z.string().optional(),
  pattern: z.array(Pattern).min(1).max(10),
});

const File = z.object({ problemMatcher: z.array(Matcher).min(1).max(100) });

const fieldNames = ["file", "fromPath", "line", "column", "severity", "code", "message"] as const;
type Fields = { readonly [name in (typeof fieldNames)[number]]?: string };

type Active = {
  readonly owner: string;
  /** What counts where the patterns find none. */
  readonly standard: Fields;
  readonly patterns: readonly Step[];
  /** What the patterns before the last found, by place; undefined: they have not matched. */
  found: (Fields | undefined)[];
  strikes: number;
};

type Step = { readonly shape: z.infer<typeof Pattern>; readonly expression: SafeExpression };

const fileBytesMax = 1024 * 1024;
const lineLengthMax = 8192;
const strikesMax = 3;

export class Matchers {
  readonly #workspace: string;
  #active: Active[] = [];

  constructor(workspace: string) {
    this.#workspace = workspace;
  }

  /** From a file of matchers; one with the same owner takes the place of the former, later ones are asked first. */
  add(path: string): void {
    for (const { owner, severity, fromPath, pattern } of this.#read(path)) {
      const patterns = pattern.map((shape) => ({ shape, expression: new SafeExpression(shape.regexp) }));
      checkPatterns(owner, severity, patterns);
      this.remove(owner);
      const standard = { ...(severity && { severity }), ...(fromPath && { fromPath }) };
      this.#active.unshift({ owner, standard, patterns, found: [], strikes: 0 });
    }
  }

  remove(owner: string): void {
    this.#active = this.#active.filter((active) => active.owner.toLowerCase() !== owner.toLowerCase());
  }

  /** Those that a file of matchers names. */
  removeFrom(path: string): void {
    for (const { owner } of this.#read(path)) this.remove(owner);
  }

  /** `warn` hears of a matcher that is taken away because it is too slow. */
  match(line: string, warn: (message: string) => void): Annotation | undefined {
    if (this.#active.length === 0) return undefined;
    const text = withoutColours(line).slice(0, lineLengthMax);
    for (const active of this.#active) {
      const fields = this.#step(active, text, warn);
      if (!fields) continue;
      for (const other of this.#active) if (other !== active) other.found = [];
      const annotation = this.#annotation(fields);
      if (annotation) return annotation;
    }
    return undefined;
  }

  #read(path: string): z.infer<typeof File>["problemMatcher"] {
    const absolute = isAbsolute(path) ? path : join(this.#workspace, path);
    if (statSync(absolute).size > fileBytesMax) throw new Error("the file is too large for problem matchers");
    return File.parse(JSON.parse(readFileSync(absolute, "utf8").replace(/^\uFEFF/, ""))).problemMatcher;
  }

  #step(active: Active, text: string, warn: (message: string) => void): Fields | undefined {
    try {
      const fields = step(active, text);
      return fields && withStandard(fields, active.standard);
    } catch (error) {
      if (!(error instanceof PatternTooSlow)) throw error;
      active.strikes += 1;
      if (active.strikes < strikesMax) return undefined;
      this.remove(active.owner);
      warn(`Removing issue matcher '${active.owner}'. Matcher failed ${strikesMax} times. Error: ${error.message}`);
      return undefined;
    }
  }

  /** Undefined: it says nothing, or has a severity that is none. */
  #annotation({ file, fromPath, line, column, severity, code, message = "" }: Fields): Annotation | undefined {
    const level = levelOf(severity);
    if (message.trim() === "" || !level) return undefined;
    const path = file === undefined ? undefined : this.#inside(file, fromPath);
    return {
      level,
      message,
      ...(path !== undefined && { file: path }),
      ...(isNumber(line) && { line: Number(line) }),
      ...(isNumber(column) && { column: Number(column) }),
      ...(code !== undefined && code.trim() !== "" && { code: code.trim() }),
    };
  }

  /** Only files that are there, and in the workspace, are worth a place; `fromPath` is a file beside which it lies. */
  #inside(file: string, fromPath = ""): string | undefined {
    const found = resolve(this.#workspace, dirname(fromPath), file);
    const path = relative(this.#workspace, found);
    if (path.startsWith("..") || isAbsolute(path)) return undefined;
    return statSync(found, { throwIfNoEntry: false })?.isFile() ? path : undefined;
  }
}

/** What a file of matchers may not say. */
function checkPatterns(owner: string, severity: string | undefined, patterns: readonly Step[]): void {
  if (!levelOf(severity)) throw new Error(`the matcher ${owner} has the severity '${severity}', which is none`);
  const set = new Set<string>();
  for (const [index, { shape, expression }] of patterns.entries()) {
    if (shape.loop && (index === 0 || index < patterns.length - 1))
      throw new Error(`the matcher ${owner}: only the last of several patterns may loop`);
    if (shape.loop && shape.message === undefined)
      throw new Error(`the matcher ${owner}: a pattern that loops must set message`);
    for (const name of fieldNames) {
      const place = shape[name];
      if (place === undefined) continue;
      if (set.has(name)) throw new Error(`the matcher ${owner} sets ${name} twice`);
      if (place > expression.groups) throw new Error(`the matcher ${owner}: ${name} is ${place}, which is no group`);
      set.add(name);
    }
  }
  if (!set.has("message")) throw new Error(`the matcher ${owner} never sets message`);
}

const isNumber = (text: string | undefined): boolean => text !== undefined && /^\d+$/.test(text);

function levelOf(severity = ""): AnnotationLevel | undefined {
  const word = severity === "" ? "error" : severity.toLowerCase();
  return word === "error" || word === "warning" || word === "notice" ? word : undefined;
}

const withStandard = (fields: Fields, standard: Fields): Fields => {
  const found = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
  return { ...standard, ...found };
};

/**
 * The fields of a problem when the last pattern has matched. From the last pattern to the first: each needs the one
 * before it to have matched the line before, and the first is tried at every line.
 */
function step(active: Active, text: string): Fields | undefined {
  const last = active.patterns.length - 1;
  for (let at = last; at >= 0; at -= 1) {
    const before = at === 0 ? {} : active.found[at - 1];
    const pattern = active.patterns[at];
    if (!before || !pattern) continue;
    const match = pattern.expression.exec(text);
    const fields = match && { ...before, ...fieldsOf(pattern.shape, match) };
    if (at < last) {
      active.found[at] = fields;
    } else if (fields) {
      active.found = []; // a loop tries its last pattern again, with what came before it
      if (pattern.shape.loop) active.found[at - 1] = before;
      return fields;
    } else if (at > 0) active.found[at - 1] = undefined;
  }
  return undefined;
}

function fieldsOf(shape: z.infer<typeof Pattern>, match: readonly (string | undefined)[]): Fields {
  const pairs = fieldNames.flatMap((name) => {
    const place = shape[name];
    return place === undefined ? [] : [[name, match[place] ?? ""] as const];
  });
  return Object.fromEntries(pairs);
}

// oxlint-disable-next-line eslint/no-control-regex -- that is what colours are made of
const withoutColours = (text: string): string => text.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, "");
