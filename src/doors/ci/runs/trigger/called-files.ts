/**
 * The files that a workflow calls, found before its run is recorded: those of its own commit, and those of other
 * registered repositories, where each `owner/repo@ref` is one commit for the whole run (CI-61).
 */
import { dirname } from "node:path";
import { Fault, isFault } from "#base/fault.ts";
import type { Sources } from "#sources/sources.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { standardLimits } from "#doors/ci/workflow/limits.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { calledPath, foreignFile } from "#doors/ci/local/workflows.ts";

/** Reads files of other repositories of one tenant. */
export type Foreign = {
  /** The text of `owner/repo/path@ref`; throws a Fault that says what to do. */
  read(path: string): Promise<string>;
  /** By `owner/repo@ref`: the commit. */
  readonly commits: ReadonlyMap<string, string>;
};

export type CalledFiles = {
  readonly workflow: Workflow;
  readonly called: readonly SourceFile[];
};

export async function withCalled(
  file: SourceFile,
  own: ReadonlyMap<string, SourceFile>,
  foreign: Foreign,
): Promise<CalledFiles> {
  const read = new Map<string, SourceFile>();
  const used = new Map<string, SourceFile>();
  for (let round = 0; round <= standardLimits.calledDepthMax + 1; round += 1) {
    const missing = new Set<string>();
    const result = compileOnce(file, (uses, caller) => {
      const path = calledPath(uses, caller) ?? "";
      const found = foreignFile(path) ? read.get(path) : own.get(path);
      if (found) used.set(path, found);
      else if (foreignFile(path)) missing.add(path);
      return found;
    });
    if (result.ok) return { workflow: result.workflow, called: [...used.values()] };
    if (missing.size === 0 || read.size + missing.size > standardLimits.calledFilesMax) {
      const why = result.problems.map((problem) => problemText(problem)).join("; ");
      throw new Fault("invalid", "compile the workflow", { why });
    }
    for (const path of missing) read.set(path, { path, text: await foreign.read(path) });
  }
  throw new Fault("invalid", "compile the workflow", { why: "too many workflows call one another" });
}

export function foreignOf(sources: Sources, tenant: string): Foreign {
  const commits = new Map<string, string>();
  return {
    commits,
    async read(asked) {
      const file = foreignFile(asked);
      if (!file) throw new Fault("invalid", "read a called workflow", { uses: asked.slice(0, 300) });
      const { repository, path, ref } = file;
      try {
        const found = await sources.get(tenant, repository);
        const key = `${repository}@${ref}`;
        const sha = commits.get(key) ?? (await sources.copies.resolve(found, ref)).sha;
        commits.set(key, sha);
        const files = await sources.copies.files(found, sha, dirname(path));
        const text = files.find((one) => one.path === path)?.text;
        if (text === undefined) throw new Fault("not-found", "find the file", { repository, path, sha });
        return text;
      } catch (error) {
        if (!isFault(error, "not-found")) throw error;
        throw new Fault("invalid", "read a called workflow", {
          uses: asked,
          why: error.message,
          try: `register it with: millrace ci add ${repository} <url>`,
        });
      }
    },
  };
}
