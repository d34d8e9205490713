/** What a step writes into GITHUB_ENV, GITHUB_OUTPUT, GITHUB_STATE and GITHUB_PATH (CI-41 to CI-43). */

export class FileCommandFault extends Error {}

export type Pair = { readonly name: string; readonly value: string };

/**
 * `NAME=value`, or `NAME<<END`, lines, `END`. Later ones of the same name win, which is for the caller to see to; those
 * before a line that cannot be read count.
 */
export function* pairsIn(text: string): Generator<Pair> {
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line === "") continue;
    const equals = line.indexOf("=");
    const heredoc = line.indexOf("<<");
    if (equals >= 0 && (heredoc < 0 || equals < heredoc)) {
      const name = line.slice(0, equals);
      if (name === "") throw new FileCommandFault(`Invalid format '${line}'. Name must not be empty`);
      yield { name, value: line.slice(equals + 1) };
    } else if (heredoc >= 0) {
      const { pair, next } = heredocAt(lines, at, heredoc);
      yield pair;
      at = next;
    } else throw new FileCommandFault(`Invalid format '${line}'`);
  }
}

function heredocAt(
  lines: readonly string[],
  at: number,
  heredoc: number,
): { readonly pair: Pair; readonly next: number } {
  const line = lines[at] ?? "";
  const name = line.slice(0, heredoc);
  const delimiter = line.slice(heredoc + 2);
  if (name === "" || delimiter === "")
    throw new FileCommandFault(`Invalid format '${line}'. Name must not be empty and delimiter must not be empty`);
  const end = lines.indexOf(delimiter, at + 1);
  if (end < 0) throw new FileCommandFault(`Invalid value. Matching delimiter not found '${delimiter}'`);
  return { pair: { name, value: lines.slice(at + 1, end).join("\n") }, next: end };
}

/** Lines of GITHUB_PATH. */
export function pathsIn(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => line !== "");
}

/** Variables that a step may not set for the ones after it. */
export function isEnvRefused(name: string): boolean {
  return name.toUpperCase() === "NODE_OPTIONS";
}

/** Later additions come first; one that is there already moves. */
export function withPaths(before: readonly string[], added: readonly string[]): readonly string[] {
  let paths = [...before];
  for (const path of added) paths = [path, ...paths.filter((other) => other !== path)];
  return paths;
}

export const summaryBytesMax = 1024 * 1024;
export const fileBytesMax = 64 * 1024 * 1024;
