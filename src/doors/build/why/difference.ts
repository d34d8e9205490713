/** What can differ between two actions, and how it is described to people. */

export type Change<T> = { readonly before: T | undefined; readonly after: T | undefined };

export type Difference =
  | ({ readonly kind: "argument"; readonly at: number } & Change<string>)
  | ({ readonly kind: "environment"; readonly name: string } & Change<string>)
  | ({ readonly kind: "property"; readonly name: string } & Change<string>)
  | ({ readonly kind: "output"; readonly path: string } & Change<"wanted">)
  | ({ readonly kind: "working-directory" } & Change<string>)
  | ({ readonly kind: "timeout" } & Change<string>)
  | ({ readonly kind: "salt" } & Change<string>)
  | ({ readonly kind: "do-not-cache" } & Change<boolean>)
  | ({ readonly kind: "input"; readonly path: string } & Change<string>)
  /** Something differs whose bytes are not in the store, so it cannot be said what. */
  | ({ readonly kind: "unseen"; readonly what: "command" | "inputs"; readonly path: string } & Change<string>)
  /** There are more differences than are worth listing. */
  | { readonly kind: "more" };

/** One line for a person. */
export function tell(difference: Difference): string {
  switch (difference.kind) {
    case "argument":
      return `argument ${difference.at}: ${fromTo(difference)}`;
    case "environment":
      return `environment variable ${difference.name}: ${fromTo(difference)}`;
    case "property":
      return `platform property ${difference.name}: ${fromTo(difference)}`;
    case "output":
      return `output ${difference.path}: ${difference.after ? "asked for now, not before" : "no longer asked for"}`;
    case "working-directory":
      return `working directory: ${fromTo(difference)}`;
    case "timeout":
      return `timeout: ${fromTo(difference)}`;
    case "salt":
      return `salt: ${fromTo(difference)}`;
    case "do-not-cache":
      return `do_not_cache: ${fromTo(difference)}`;
    case "input":
      return `input ${difference.path}: ${fromTo(difference)}`;
    case "unseen": {
      const where = difference.path === "" ? "" : ` below ${difference.path}`;
      return `${difference.what}${where}: ${fromTo(difference)}; not in the store, so that is all there is to say`;
    }
    case "more":
      return "and more";
  }
}

function fromTo({ before, after }: Change<string | boolean>): string {
  if (before === undefined) return `${shown(after)} is new`;
  if (after === undefined) return `${shown(before)} is gone`;
  return `${shown(before)} -> ${shown(after)}`;
}

const shownMax = 200;

function shown(value: string | boolean | undefined): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > shownMax ? `${text.slice(0, shownMax)}...` : text;
}
