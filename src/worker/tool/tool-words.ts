/**
 * The words of an action's command, as a tool that stays needs them: those that it is started with, once, and those
 * that are asked of it, each time. The latter are in flag files: `@file`, `--flagfile=file`. Pure but for how files
 * are read.
 */
import { Fault } from "#base/fault.ts";

export type ToolWords = {
  /** Without the flag files, and with the word that makes it stay. */
  readonly start: readonly string[];
  readonly flagFiles: readonly string[];
};

const flagFile = /^(?:@|--?flagfile=)./s;

/** Undefined for a command without a flag file: there would be nothing to ask. */
export function toolWords(words: readonly string[]): ToolWords | undefined {
  // The first word is the tool, whatever it is called.
  const [program = "", ...others] = words;
  const flagFiles = others.filter((word) => flagFile.test(word));
  if (flagFiles.length === 0) return undefined;
  const start = [program, ...others.filter((word) => !flagFile.test(word)), "--persistent_worker"];
  return { start, flagFiles };
}

/** The bytes of an input by its path; undefined where there is no such input. */
export type ReadInput = (path: string) => Promise<Uint8Array | undefined>;

export type ExpandLimits = { readonly depthMax: number; readonly wordsMax: number };

const limitsDefault: ExpandLimits = { depthMax: 16, wordsMax: 1_000_000 };

/**
 * What is asked: the lines of each `@file`, and of those that are named in there. Other words stand for themselves, as
 * do `@@word` and labels of other repositories (`@name//path`).
 */
export async function expandFlagFiles(
  flagFiles: readonly string[],
  read: ReadInput,
  limits: ExpandLimits = limitsDefault,
): Promise<readonly string[]> {
  const words: string[] = [];
  const expand = async (word: string, depth: number): Promise<void> => {
    if (!isNested(word)) words.push(word);
    else if (depth >= limits.depthMax) throw refuse(word, "flag files within flag files, too deep");
    else for (const line of linesOf(await wholeText(word, read))) await expand(line, depth + 1);
    if (words.length > limits.wordsMax) throw refuse(word, "too many words");
  };
  for (const word of flagFiles) await expand(word, 0);
  return words;
}

const isNested = (word: string): boolean => /^@[^@]/s.test(word) && !/^@.*\/\//s.test(word);

async function wholeText(word: string, read: ReadInput): Promise<string> {
  const bytes = await read(word.slice(1));
  if (!bytes) throw refuse(word, "no input of that name");
  return new TextDecoder().decode(bytes);
}

/** Empty ones mean nothing. */
const linesOf = (text: string): readonly string[] => text.split(/\r?\n/).filter((line) => line !== "");

const refuse = (word: string, why: string): Fault =>
  new Fault("invalid", "read flag file", { file: word.slice(0, 200), why });
