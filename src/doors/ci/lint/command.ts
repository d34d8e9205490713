/** What `millrace ci lint` does. */
import { relative, resolve } from "node:path";
import type { ExitCode, World } from "#door/command.ts";
import { calledFrom, readAll, readSource, workflowPaths } from "#doors/ci/local/workflows.ts";
import { rootOf } from "#doors/ci/local/repository.ts";
import { type Finding, findingText } from "./finding.ts";
import { lint } from "./lint.ts";
import { sarifOf } from "./sarif.ts";

export type LintFlags = {
  readonly files: readonly string[];
  readonly label?: readonly string[];
  readonly json?: boolean;
  readonly sarif?: boolean;
  readonly strict?: boolean;
};

export async function lintWorkflows(
  { files, label, json, sarif, strict }: LintFlags,
  world: World,
  folder: string,
): Promise<ExitCode> {
  const root = (await rootOf(folder)) ?? folder;
  const paths =
    files.length > 0 ? files.map((file) => relative(root, resolve(folder, file))) : await workflowPaths(root);
  if (paths.length === 0) {
    world.note("ci lint: there is no workflow in .github/workflows; name files to check others");
    return 2;
  }
  const called = calledFrom(await readAll(root));
  const findings: Finding[] = [];
  for (const path of paths)
    findings.push(...lint(await readSource(root, path), { called, ...(label && { labels: label }) }));
  if (sarif) world.out(JSON.stringify(sarifOf(findings, "1"), null, 2));
  else for (const finding of findings) world.out(json ? JSON.stringify(finding) : findingText(finding));
  const errors = findings.filter((finding) => finding.level === "error").length;
  if (!json && !sarif)
    world.note(
      `${paths.length} ${paths.length === 1 ? "file" : "files"}: ${errors} errors, ${findings.length - errors} warnings`,
    );
  return errors > 0 || (strict && findings.length > 0) ? 1 : 0;
}
