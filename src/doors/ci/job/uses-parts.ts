/** `owner/repo[/path]@ref` in its parts (CI-71). Pure. */

export type UsesParts = { readonly repository: string; readonly path: string; readonly ref: string };

/** Undefined for other forms, and for paths that lead out of the repository. */
export function usesParts(uses: string): UsesParts | undefined {
  const [, owner, name, path = "", ref] = /^([^/@]+)\/([^/@]+)((?:\/[^@]*)?)@(.+)$/.exec(uses) ?? [];
  if (owner === undefined || name === undefined || ref === undefined) return undefined;
  if (path.split("/").includes("..")) return undefined;
  return {
    repository: `${owner}/${name}`,
    path: path
      .split("/")
      .filter((part) => part !== "")
      .join("/"),
    ref,
  };
}
