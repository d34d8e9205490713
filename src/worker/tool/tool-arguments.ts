/**
 * Splits an action's command line for a tool that stays: the arguments it is started with, once, and those of each
 * request. The latter are in flag files: `@file`, `--flagfile=file`. Pure, except for reading files.
 */
import { Fault } from "#base/fault.ts";

export type ToolArguments = {
  /** Without the flag files, and with the argument that makes it stay. */
  readonly start: readonly string[];
  readonly flagFiles: readonly string[];
};

const flagFile = /^(?:@|--?flagfile=)./s;

/** Undefined for a command without a flag file, which has no request arguments. */
export function toolArguments(words: readonly string[]): ToolArguments | undefined {
  // The first argument is the tool, whatever its name.
  const [program = "", ...others] = words;
  const flagFiles = others.filter((word) => flagFile.test(word));
  if (flagFiles.length === 0) return undefined;
  const start = [program, ...others.filter((word) => !flagFile.test(word)), "--persistent_worker"];
  return { start, flagFiles };
}

/** The bytes of an input by its path; undefined if there is no such input. */
export type ReadInput = (path: string) => Promise<Uint8Array | undefined>;

export type ExpandLimits = { readonly depthMax: number; readonly argumentsMax: number };

const limitsDefault: ExpandLimits = { depthMax: 16, argumentsMax: 1_000_000 };

/**
 * The request's arguments: the lines of each `@file`, and of the files named in there. Other arguments are kept,
 * including `@@word` and labels of other repositories (`@name//path`).
 */
export async function expandFlagFiles(
  flagFiles: readonly string[],
  read: ReadInput,
  limits: ExpandLimits = limitsDefault,
): Promise<readonly string[]> {
  const words: string[] = [];
  const expand = async (word: string, depth: number): Promise<void> => {
    if (!isNested(word)) words.push(word);
    else if (depth >= limits.depthMax) throw refuse(word, "flag files are nested too deeply");
    else for (const line of linesOf(await wholeText(word, read))) await expand(line, depth + 1);
    if (words.length > limits.argumentsMax) throw refuse(word, "too many arguments");
  };
  for (const word of flagFiles) await expand(word, 0);
  return words;
}

const isNested = (word: string): boolean => /^@[^@]/s.test(word) && !/^@.*\/\//s.test(word);

async function wholeText(word: string, read: ReadInput): Promise<string> {
  const bytes = await read(word.slice(1));
  if (!bytes) throw refuse(word, "there is no input of that name");
  return new TextDecoder().decode(bytes);
}

/** Empty lines are ignored. */
const linesOf = (text: string): readonly string[] => text.split(/\r?\n/).filter((line) => line !== "");

const refuse = (word: string, why: string): Fault =>
  new Fault("invalid", "read flag file", { file: word.slice(0, 200), why });
