/** What repositories, refs and commits may be called. Pure. */
import { Fault } from "#base/fault.ts";

const part = "[A-Za-z0-9_][A-Za-z0-9._-]{0,99}";
const repositoryShape = new RegExp(`^${part}/${part}$`);

export function checkRepositoryName(name: string): void {
  if (!repositoryShape.test(name) || name.includes("..") || name.endsWith(".git") || name.endsWith(".lock"))
    throw new Fault("invalid", "name a repository", {
      repository: name.slice(0, 100),
      try: "owner/name, in letters, digits, dots and dashes",
    });
}

export const isSha = (text: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

export const noCommit = "0".repeat(40);

const refLengthMax = 500;

/** The rules of git-check-ref-format for a full name, and a limit of length. */
export function isRef(ref: string): boolean {
  return (
    ref.length <= refLengthMax &&
    /^refs\/(?:[^/]+\/)*[^/]+$/.test(ref) &&
    !/[\s\p{Cc}~^:?*[\\]/u.test(ref) &&
    !/\.\.|@\{|\/\.|\.lock(?:\/|$)|\.$/.test(ref)
  );
}

/** What a person may mean by a name of a branch, a tag or a full ref, the likeliest first. */
export function refsMeant(asked: string): readonly string[] {
  const all = asked.startsWith("refs/") ? [asked] : [`refs/heads/${asked}`, `refs/tags/${asked}`];
  return all.filter(isRef);
}
