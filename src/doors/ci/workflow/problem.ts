/** What is wrong with a workflow, and where. */

export type Place = { readonly line: number; readonly column: number };

export type Problem = { readonly path: string; readonly at?: Place; readonly message: string };

export const problemsMax = 10;
const messageLengthMax = 500;

export function problemText({ path, at, message }: Problem): string {
  const place = at ? `${path} (Line: ${at.line}, Col: ${at.column})` : path;
  const text = path === "" ? message : `${place}: ${message}`;
  return text.length > messageLengthMax ? `${text.slice(0, messageLengthMax)}[...]` : text;
}

/** Collects problems of one file; further ones beyond the limit are only counted. */
export class Problems {
  readonly path: string;
  readonly #found: Problem[] = [];
  #count = 0;

  constructor(path: string) {
    this.path = path;
  }

  add(at: Place | undefined, message: string): void {
    this.#count += 1;
    if (this.#found.length < problemsMax) this.#found.push({ path: this.path, ...(at && { at }), message });
  }

  /** Problems that another file has, or that no file has. */
  addAll(problems: readonly Problem[]): void {
    for (const problem of problems) {
      this.#count += 1;
      if (this.#found.length < problemsMax) this.#found.push(problem);
    }
  }

  get found(): readonly Problem[] {
    return this.#found;
  }

  get count(): number {
    return this.#count;
  }
}
