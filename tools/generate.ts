// Writes every file that is derived from another one. With --check it only lists the stale ones.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { referencePages } from "#cli/reference.ts";
import { lintConfig } from "./lint-config.ts";
import { withPicture } from "./picture.ts";
import { moduleOf } from "./proto/code.ts";
import { descriptorsModule, descriptorsPath } from "./proto/descriptors.ts";
import { modulePathOf } from "./proto/names.ts";
import { protocolPage, protocolPagePath } from "./proto/reference.ts";
import { readProtoFiles } from "./proto/schema.ts";

export const repoRoot = join(import.meta.dirname, "..");

type Generated = { readonly path: string; readonly content: (before: string) => string };

const protoFiles = readProtoFiles(join(repoRoot, "proto"));

const generated: readonly Generated[] = [
  { path: ".oxlintrc.json", content: () => `${JSON.stringify(lintConfig(), null, 2)}\n` },
  { path: "ARCHITECTURE.md", content: withPicture },
  ...protoFiles.map((file) => ({ path: modulePathOf(file.path), content: () => moduleOf(file) })),
  { path: descriptorsPath, content: () => descriptorsModule(protoFiles) },
  { path: protocolPagePath, content: () => protocolPage(protoFiles) },
  ...referencePages().map(({ path, content }) => ({ path, content: () => content })),
];

/** The generated files whose content is stale, with the right content. */
export function staleFiles(root: string = repoRoot): readonly { path: string; content: string }[] {
  return generated.flatMap(({ path, content }) => {
    const before = readOrEmpty(join(root, path));
    const after = content(before);
    return after === before ? [] : [{ path, content: after }];
  });
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

if (import.meta.main) {
  const stale = staleFiles();
  const checkOnly = process.argv.includes("--check");
  for (const { path, content } of stale) {
    if (!checkOnly) {
      mkdirSync(dirname(join(repoRoot, path)), { recursive: true });
      writeFileSync(join(repoRoot, path), content);
    }
    console.log(checkOnly ? `stale: ${path} (run: npm run generate)` : `wrote ${path}`);
  }
  if (checkOnly && stale.length > 0) process.exitCode = 1;
}
