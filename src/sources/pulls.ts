/** Refs of pull requests: the head, and what merging it into its base would give. */
import { Fault, isFault } from "#base/fault.ts";
import { commitOf, type Copies } from "./copies.ts";
import type { Repository } from "./book.ts";
import { git, gitText } from "./git.ts";
import { isRef, isSha } from "./names.ts";

export type PullRefs = {
  readonly head: string;
  readonly base: string;
  /** Undefined: the two conflict. */
  readonly merge: string | undefined;
};

const author = {
  GIT_AUTHOR_NAME: "millrace",
  GIT_AUTHOR_EMAIL: "millrace@localhost",
  GIT_COMMITTER_NAME: "millrace",
  GIT_COMMITTER_EMAIL: "millrace@localhost",
} as const;

/** Sets `refs/pull/N/head` and, unless the two conflict, `refs/pull/N/merge`. */
export async function setPull(
  copies: Copies,
  repository: Repository,
  { number, head, base }: { readonly number: number; readonly head: string; readonly base: string },
): Promise<PullRefs> {
  if (!Number.isSafeInteger(number) || number < 1) throw new Fault("invalid", "set a pull request", { number });
  if (![head, base].every((one) => isSha(one) || isRef(one)))
    throw new Fault("invalid", "set a pull request", { head, base });
  const path = await copies.fetch(repository);
  return await copies.turns.take(path, async () => {
    const [headSha, baseSha] = [await commitOf(path, head), await commitOf(path, base)];
    if (headSha === undefined || baseSha === undefined)
      throw new Fault("not-found", "find the commits", { head, base });
    await git(path, ["update-ref", `refs/pull/${number}/head`, headSha]);
    const merge = await mergeOf(path, baseSha, headSha, number);
    const ref = `refs/pull/${number}/merge`;
    await git(path, merge === undefined ? ["update-ref", "-d", ref] : ["update-ref", ref, merge]);
    return { head: headSha, base: baseSha, merge };
  });
}

async function mergeOf(path: string, base: string, head: string, number: number): Promise<string | undefined> {
  const tree = await gitText(path, ["merge-tree", "--write-tree", "--no-messages", base, head]).catch(
    (error: unknown) => {
      if (isFault(error, "invalid")) return "";
      throw error;
    },
  );
  if (!isSha(tree.trim())) return undefined;
  // The same two commits give the same merge, whenever and wherever it is made.
  const date = (await gitText(path, ["log", "-1", "--format=%ct", head])).trim();
  const env = { ...author, GIT_AUTHOR_DATE: `${date} +0000`, GIT_COMMITTER_DATE: `${date} +0000` };
  const message = `Merge ${head} into ${base} (pull request ${number})`;
  const made = await gitText(path, ["commit-tree", tree.trim(), "-p", base, "-p", head, "-m", message], { env });
  return made.trim();
}
