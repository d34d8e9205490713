/** `hashFiles`: one digest over the files that patterns find in the workspace (CI-30). */
import { createHash } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { EvaluationFault } from "#doors/ci/workflow/expression/functions.ts";

const limitMs = 120_000;
const chunkBytes = 256 * 1024;
const followOption = "--follow-symbolic-links";

export function hashFiles(
  workspace: string,
  args: readonly string[],
  nowMs: () => number = () => performance.now(),
): string {
  const follows = args[0] === followOption;
  const patterns = (follows ? args.slice(1) : args).flatMap((arg) => arg.split(/\r?\n/));
  const rules = patterns.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  if (rules.length === 0) return "";
  const search = new Search(workspace, follows, nowMs() + limitMs, nowMs);
  const total = createHash("sha256");
  let count = 0;
  for (const path of search.files(rules.map((rule) => ruleOf(rule, workspace)))) {
    total.update(search.digestOf(path));
    count += 1;
  }
  return count === 0 ? "" : total.digest("hex");
}

type Rule = {
  readonly isExclude: boolean;
  readonly expression: RegExp;
  /** Where it can match at all. */ readonly base: string;
};

function ruleOf(text: string, workspace: string): Rule {
  const isExclude = text.startsWith("!");
  const pattern = isExclude ? text.slice(1).trim() : text;
  const absolute = isAbsolute(pattern) ? pattern : join(workspace, pattern);
  const fixed = absolute.split(sep);
  const wild = fixed.findIndex((part) => /[*?[]/.test(part));
  const base = wild < 0 ? absolute : fixed.slice(0, wild).join(sep) || sep;
  return { isExclude, expression: toExpression(absolute), base };
}

/** A pattern that names a folder means all that is in it. */
function toExpression(pattern: string): RegExp {
  const source = pattern
    .replace(/\/+$/, "")
    .split("/")
    .map((part) => (part === "**" ? "**" : partSource(part)))
    .join("/")
    .replaceAll("/**/", "/(?:.*/)?")
    .replace(/\/\*\*$/, "(?:/.*)?")
    .replace(/^\*\*\//, "(?:.*/)?");
  return new RegExp(`^${source}(?:/.*)?$`, "su");
}

function partSource(part: string): string {
  return part.replaceAll(/\[[^\]]+\]|\*+|\?|[$()+.^{|}\\\][/]/g, (found) => {
    if (found.startsWith("[") && found.length > 2) return found.replace("[!", "[^");
    if (found.startsWith("*")) return "[^/]*";
    return found === "?" ? "[^/]" : `\\${found}`;
  });
}

class Search {
  readonly #workspace: string;
  readonly #follows: boolean;
  readonly #untilMs: number;
  readonly #nowMs: () => number;

  constructor(workspace: string, follows: boolean, untilMs: number, nowMs: () => number) {
    this.#workspace = workspace;
    this.#follows = follows;
    this.#untilMs = untilMs;
    this.#nowMs = nowMs;
  }

  /** Depth first, names in order: the order is part of the digest. */
  *files(rules: readonly Rule[]): Generator<string> {
    const seen = new Set<string>();
    const bases = [...new Set(rules.filter((rule) => !rule.isExclude).map((rule) => rule.base))];
    for (const base of bases.filter(
      (path) => !bases.some((other) => other !== path && path.startsWith(`${other}${sep}`)),
    ))
      for (const path of this.#walk(base, new Set())) {
        if (seen.has(path) || !isChosen(path, rules)) continue;
        seen.add(path);
        yield path;
      }
  }

  digestOf(path: string): Buffer {
    const hash = createHash("sha256");
    const file = openSync(path, "r");
    try {
      const chunk = Buffer.alloc(chunkBytes);
      for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
        hash.update(chunk.subarray(0, read));
        this.#checkTime();
      }
    } finally {
      closeSync(file);
    }
    return hash.digest();
  }

  *#walk(path: string, above: ReadonlySet<string>): Generator<string> {
    this.#checkTime();
    if (relative(this.#workspace, path).startsWith("..")) return; // only what is in the workspace counts
    const stats = this.#stat(path);
    if (!stats) return;
    if (stats.isFile()) yield path;
    if (!stats.isDirectory()) return;
    const real = realpathSync(path);
    if (above.has(real)) return;
    for (const name of readdirSync(path).toSorted()) yield* this.#walk(join(path, name), new Set([...above, real]));
  }

  #stat(path: string): ReturnType<typeof statSync> | undefined {
    try {
      const link = lstatSync(path);
      if (!link.isSymbolicLink()) return link;
      const target = statSync(path);
      return target.isFile() || this.#follows ? target : undefined;
    } catch {
      return undefined; // gone, or a link to nothing
    }
  }

  #checkTime(): void {
    if (this.#nowMs() > this.#untilMs) throw new EvaluationFault("hashFiles did not finish within 120 seconds");
  }
}

function isChosen(path: string, rules: readonly Rule[]): boolean {
  let isIn = false;
  for (const { isExclude, expression } of rules) if (expression.test(path)) isIn = !isExclude;
  return isIn;
}
