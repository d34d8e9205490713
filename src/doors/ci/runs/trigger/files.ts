import type { Repository } from "#sources/book.ts";
import type { Sources } from "#sources/sources.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { workflowFolder } from "#doors/ci/local/workflows.ts";

/** The workflows of a commit, as they are in it. */
export const workflowsOf = async (
  { copies }: Sources,
  repository: Repository,
  sha: string,
): Promise<readonly SourceFile[]> =>
  (await copies.files(repository, sha, workflowFolder)).filter(({ path }) => /\.ya?ml$/.test(path));
