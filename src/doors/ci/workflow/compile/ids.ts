/** Ids of jobs and steps: what is allowed, and what a step without one is called (CI-35). */

const lengthMax = 100;

export class Ids {
  /** By upper-case name: ids differ in more than case. */
  readonly #taken = new Set<string>();

  /** Undefined when the id is fine, and taken from now on. */
  claim(id: string): string | undefined {
    if (!/^[A-Za-z_][\w-]*$/.test(id) || id.length >= lengthMax)
      return (
        `The identifier '${id}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. ` +
        `IDs must start with a letter or '_' and and must be less than ${lengthMax} characters.`
      );
    if (id.startsWith("__")) return `The identifier '${id}' is invalid. IDs starting with '__' are reserved.`;
    if (this.#taken.has(id.toUpperCase()))
      return `The identifier '${id}' may not be used more than once within the same scope.`;
    this.#taken.add(id.toUpperCase());
    return undefined;
  }

  /** `__` and what the step does, with a number when that is taken. */
  make(what: string): string {
    const base = `__${what.replaceAll(/[^\w-]/g, "_")}`;
    for (let attempt = 1; ; attempt += 1) {
      const suffix = attempt === 1 ? "" : `_${attempt}`;
      const id = base.slice(0, lengthMax - suffix.length) + suffix;
      if (this.#taken.has(id.toUpperCase())) continue;
      this.#taken.add(id.toUpperCase());
      return id;
    }
  }
}

/** What a step with `uses` is called after. */
export function usesName(uses: string): string {
  if (uses.startsWith("docker://")) return uses.slice("docker://".length) || "run";
  if (isLocalUses(uses)) return "self";
  const [path = ""] = uses.split("@");
  const [owner, repository] = path.split(/[/\\]/).filter((part) => part !== "");
  return owner !== undefined && repository !== undefined ? `${owner}/${repository}` : "run";
}

export const isLocalUses = (uses: string): boolean => /^\.[/\\]/.test(uses) || uses.startsWith("$/");

/** Undefined when it is one of the forms of CI-71. */
export function usesProblem(uses: string): string | undefined {
  if (uses.startsWith("docker://") || isLocalUses(uses)) return undefined;
  const [path = "", reference = "", ...rest] = uses.split("@");
  const parts = path.split(/[/\\]/).filter((part) => part !== "");
  if (parts.length >= 2 && reference !== "" && rest.length === 0) return undefined;
  return `Expected format {org}/{repo}[/path]@ref. Actual '${uses}'`;
}
