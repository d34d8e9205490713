import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { repoRoot } from "./generate.ts";

/** Paths below the repository, with forward slashes, of every file that is ours. */
export function ourFiles(...patterns: readonly string[]): readonly string[] {
  const skip = new Set(["node_modules", ".git", ".millrace", "coverage", "dist"]);
  return globSync(patterns, { cwd: repoRoot, exclude: (entry) => skip.has(entry.name), withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(repoRoot.length + 1))
    .map((path) => path.split(sep).join("/"))
    .toSorted();
}

export const read = (path: string): string => readFileSync(join(repoRoot, path), "utf8");

// Sufficient because the formatter gives every import one form: `from "x"`, `import "x"`, `import("x")`, and `new
// URL("./x.ts", import.meta.url)` for the files of worker threads.
const importForms = [
  /^(?:import|export)\b[^;"]*?\bfrom "([^"]+)"/gm,
  /^import "([^"]+)"/gm,
  /\bimport\("([^"]+)"\)/g,
  /\bnew URL\(\s*"(\.[^"]+\.ts)",\s*import\.meta\.url/g,
  /\bimport\.meta\.resolve\("([^"]+)"\)/g,
];

/** What a source file imports, as written. */
export function importsOf(source: string): readonly string[] {
  return importForms.flatMap((form) => [...source.matchAll(form)].map(([, specifier]) => specifier ?? ""));
}

/** Our file that an import refers to, or undefined for a package or a node: module. */
export function targetOf(importer: string, specifier: string): string | undefined {
  if (/^#(testing|e2e|bench)\//.test(specifier)) return specifier.slice(1);
  if (specifier.startsWith("#")) return `src/${specifier.slice(1)}`;
  if (specifier.startsWith("."))
    return normalize(join(dirname(importer), specifier))
      .split(sep)
      .join("/");
  return undefined;
}
