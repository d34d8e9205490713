/**
 * Looks at the words of a YAML text before it is parsed: the parser takes many seconds for a megabyte of brackets, and
 * the words alone are had in a fraction of one.
 */
import { Lexer } from "yaml";
import type { Limits } from "#doors/ci/workflow/limits.ts";

/** About what the allowed number of nodes takes. */
const wordsPerNode = 6;

/** Why the text is not worth parsing; undefined when it is. */
export function hostileBy(text: string, { depthMax, nodesMax }: Limits): string | undefined {
  let words = 0;
  let flowDepth = 0;
  let inLine = 0;
  for (const word of new Lexer().lex(text)) {
    words += 1;
    if (words > nodesMax * wordsPerNode) return "Maximum YAML nodes exceeded";
    if (word === "[" || word === "{") flowDepth += 1;
    else if (word === "]" || word === "}") flowDepth -= 1;
    else if (word === "-" || word === "?") inLine += 1;
    else if (word.startsWith("\n") || word.startsWith("\r")) inLine = 0;
    if (flowDepth > depthMax || inLine > depthMax) return "Maximum object depth exceeded";
  }
  return undefined;
}
