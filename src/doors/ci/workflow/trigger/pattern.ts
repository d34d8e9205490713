/** Patterns for branches, tags and paths (CI-53, CI-54). */

/**
 * `*` any but a slash, `**` anything, `?` and `+` repeat what is before them, `[]` a class, `\` takes the next
 * character as it is. The whole name must match, in its case.
 */
export function patternMatches(pattern: string, name: string): boolean {
  return compiled(pattern).test(name);
}

const kept = new Map<string, RegExp>();
const keptMax = 1024;
const patternLengthMax = 1024;

export class PatternFault extends Error {}

function compiled(pattern: string): RegExp {
  const found = kept.get(pattern);
  if (found) return found;
  if (pattern.length > patternLengthMax)
    throw new PatternFault(`a pattern is longer than ${patternLengthMax} characters`);
  const expression = toRegExp(pattern);
  if (kept.size >= keptMax) kept.clear();
  kept.set(pattern, expression);
  return expression;
}

function toRegExp(pattern: string): RegExp {
  let source = "";
  let at = 0;
  while (at < pattern.length) {
    const { text, length } = atomAt(pattern, at, source === "");
    source += text;
    at += length;
  }
  try {
    return new RegExp(`^${source}$`, "su");
  } catch {
    throw new PatternFault(`the pattern '${pattern}' cannot be read`);
  }
}

function atomAt(pattern: string, at: number, isFirst: boolean): { readonly text: string; readonly length: number } {
  const rest = pattern.slice(at);
  const stars = /^\*+\/?/.exec(rest)?.[0];
  if (stars !== undefined) {
    if (stars === "**/") return { text: "(?:.*/)?", length: 3 };
    const count = stars.replace("/", "").length;
    return count >= 2 ? { text: ".*", length: count } : { text: "[^/]*", length: 1 };
  }
  const [character = ""] = rest;
  if ((character === "?" || character === "+") && !isFirst) return { text: character, length: 1 };
  const group = /^\[(?:\\.|[^\]\\])+\]/su.exec(rest)?.[0];
  if (group !== undefined) return { text: group, length: group.length };
  if (character === "\\" && rest.length > 1) return { text: escaped(rest[1] ?? ""), length: 2 };
  return { text: escaped(character), length: 1 };
}

const escaped = (character: string): string => character.replace(/[$()*+.?[\\\]^{|}/]/u, String.raw`\$&`);

/** In order: a pattern takes in, one with `!` takes out again, a later one may take in again. */
export function patternsAccept(patterns: readonly string[], name: string): boolean {
  let isIn = false;
  for (const pattern of patterns)
    if (pattern.startsWith("!")) {
      if (isIn && patternMatches(pattern.slice(1), name)) isIn = false;
    } else if (!isIn && patternMatches(pattern, name)) isIn = true;
  return isIn;
}
