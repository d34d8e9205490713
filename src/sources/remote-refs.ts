/** What `git ls-remote --symref` says of a repository elsewhere. */
export type RemoteRefs = {
  /** The default branch, as `refs/heads/x`. */
  readonly head?: string;
  /** The commit that each ref leads to, by its whole name; through the tag where the ref is one with a message. */
  readonly commits: ReadonlyMap<string, string>;
};

/** Pure. */
export function remoteRefs(text: string): RemoteRefs {
  const commits = new Map<string, string>();
  let head: string | undefined;
  for (const line of text.split("\n")) {
    const [value = "", name = ""] = line.split("\t");
    if (name === "HEAD" && value.startsWith("ref: ")) head = value.slice("ref: ".length);
    else if (name.startsWith("refs/")) commits.set(name.replace(/\^\{\}$/, ""), value); // a peeled tag comes second
  }
  return { ...(head !== undefined && { head }), commits };
}
