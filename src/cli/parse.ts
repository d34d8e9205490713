/** A command line against the table: the command and its parts, or what is wrong and what to type instead. */
import { parseArgs } from "node:util";
import { nearest } from "#base/nearest.ts";
import type { Command, Flags, Invocation } from "#door/command.ts";

export type Parsed =
  | { readonly kind: "run"; readonly command: Command; readonly invocation: Invocation<Flags> }
  | { readonly kind: "help"; readonly topic: Command | readonly Command[] | undefined }
  | { readonly kind: "version" }
  | { readonly kind: "wrong"; readonly problem: string; readonly next: string };

export function parseLine(args: readonly string[], table: readonly Command[]): Parsed {
  const [first] = args;
  if (first === undefined || first === "--help" || first === "-h") return { kind: "help", topic: undefined };
  if (first === "--version" || first === "-v") return { kind: "version" };
  const command = table
    .filter(({ name }) => name.split(" ").every((word, i) => args[i] === word))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
  if (!command) return unknownCommand(args, table);
  const words = args.slice(command.name.split(" ").length);
  const cut = words.indexOf("--");
  const own = cut < 0 ? words : words.slice(0, cut);
  if (own.includes("--help") || own.includes("-h")) return { kind: "help", topic: command };
  return parseOwn(command, own, cut < 0 ? undefined : words.slice(cut + 1));
}

function parseOwn(command: Command, own: readonly string[], rest: readonly string[] | undefined): Parsed {
  const next = `millrace help ${command.name}`;
  const wrong = (problem: string, instead = next): Parsed => ({
    kind: "wrong",
    problem: `${command.name}: ${problem}`,
    next: instead,
  });
  if (rest !== undefined && !command.takesRest) return wrong("takes nothing behind --");
  const kindOf = (type: Flags[string]["type"]) => (type === "boolean" ? "boolean" : "string");
  const flags = Object.entries(command.flags).map(
    ([name, { type, short }]) => [name, { type: kindOf(type), ...(short !== undefined && { short }) }] as const,
  );
  const options = Object.fromEntries(flags);
  const { tokens } = parseArgs({ args: [...own], options, allowPositionals: true, strict: false, tokens: true });
  const values: Record<string, string | readonly string[] | boolean> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const flag = command.flags[token.name];
    if (!flag) {
      const meant = nearest(token.name, Object.keys(command.flags));
      return wrong(`there is no flag ${token.rawName}${meant === undefined ? "" : `; did you mean --${meant}?`}`);
    }
    if (flag.type !== "boolean" && token.value === undefined)
      return wrong(`--${token.name} needs a value: --${token.name} ${flag.value ?? "VALUE"}`);
    if (token.value === "" && (flag.value === "FOLDER" || flag.value === "FILE"))
      return wrong(`--${token.name} needs the name of a ${flag.value.toLowerCase()}, and got an empty one`);
    if (flag.type === "boolean" && token.value !== undefined) return wrong(`--${token.name} takes no value`);
    const before = values[token.name];
    const list = Array.isArray(before) ? (before as readonly string[]) : [];
    values[token.name] = flag.type === "strings" ? [...list, token.value ?? ""] : (token.value ?? true);
  }
  const extra = positionals[command.positionalsMax];
  if (extra !== undefined) return wrong(`what is ${JSON.stringify(extra)}? It takes ${command.words || "no words"}`);
  return { kind: "run", command, invocation: { positionals, rest, values } };
}

function unknownCommand(args: readonly string[], table: readonly Command[]): Parsed {
  const words = args.filter((word) => !word.startsWith("-")).slice(0, 2);
  const [group = ""] = words;
  const inGroup = table.filter(({ name }) => name.startsWith(`${group} `));
  if (inGroup.length > 0 && words[1] === undefined && (args.includes("--help") || args.includes("-h")))
    return { kind: "help", topic: inGroup };
  if (inGroup.length > 0) {
    const known = inGroup.map(({ name }) => name.slice(group.length + 1));
    const meant = words[1] === undefined ? undefined : nearest(words[1], known);
    const problem =
      words[1] === undefined
        ? `${group}: say what to do: ${known.join(", ")}`
        : `there is no command "${words.join(" ")}"`;
    return { kind: "wrong", problem, next: meant === undefined ? "millrace help" : `millrace ${group} ${meant}` };
  }
  const names = table.map(({ name }) => name);
  const meant = nearest(words.join(" "), names) ?? nearest(group, names) ?? guessGroup(words, table);
  const problem = `there is no command "${words.join(" ") || args[0]}"`;
  return { kind: "wrong", problem, next: meant === undefined ? "millrace help" : `millrace ${meant}` };
}

/** `millrace submit` and `millrace jbo list` both have an obvious meaning. */
function guessGroup([first = "", second = ""]: readonly string[], table: readonly Command[]): string | undefined {
  const pairs = table.map(({ name }) => name).filter((name) => name.includes(" "));
  return pairs.find((name) => name.endsWith(` ${first}`)) ?? nearest(`${first} ${second}`, pairs);
}
