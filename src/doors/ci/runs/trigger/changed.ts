/** Which files an event changed, for path filters (CI-55). */
import { isFault } from "#base/fault.ts";
import type { Repository } from "#sources/book.ts";
import type { Copies } from "#sources/copies.ts";
import { gitText } from "#sources/git.ts";
import { isSha, noCommit } from "#sources/names.ts";

export type Between = { readonly from: string; readonly to: string; readonly isPull: boolean };

/** More than these are not looked at: then path filters let the event pass. */
const commitsMax = 1_000;

/**
 * Undefined where that cannot be told. A push is compared with what was there before, and the push of a new branch with
 * where it parted from the default branch; a pull request with where it parted from its base.
 */
export async function changedSince(
  copies: Copies,
  repository: Repository,
  { from, to, isPull }: Between,
): Promise<readonly string[] | undefined> {
  if (isPull) return await copies.changedFiles(repository, from, to, "...");
  const path = await copies.having(repository, to);
  const parted = from === noCommit ? await told(path, ["merge-base", "HEAD", to]) : from;
  if (parted === undefined || !isSha(parted) || parted === to) return undefined;
  const count = await told(path, ["rev-list", "--count", `--max-count=${commitsMax + 1}`, `${parted}..${to}`]);
  if (count === undefined || Number(count) > commitsMax) return undefined;
  return await copies.changedFiles(repository, parted, to, "..");
}

async function told(path: string, words: readonly string[]): Promise<string | undefined> {
  return await gitText(path, words).then(
    (text) => text.trim(),
    (error: unknown) => {
      if (isFault(error)) return undefined;
      throw error;
    },
  );
}
