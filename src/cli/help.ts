/** Help, from the table alone. */
import type { Command, Flags } from "#door/command.ts";

export function helpAll(table: readonly Command[]): readonly string[] {
  const width = Math.max(...table.map(({ name }) => name.length), "help [command]".length) + 2;
  return [
    "millrace: one durable stream of work to every wheel",
    "",
    "usage: millrace <command> [words] [flags]",
    "",
    ...table.map(({ name, about }) => `  ${name.padEnd(width)}${about}`),
    `  ${"help [command]".padEnd(width)}Show this, or all about one command.`,
    `  ${"version".padEnd(width)}Show the version.`,
    "",
    "begin with: millrace up",
  ];
}

/** Commands that begin with the same word. */
export function helpGroup(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  const [first] = commands;
  return [
    ...commands.map(({ name, about }) => `  ${name.padEnd(width)}${about}`),
    "",
    `next: millrace help ${first?.name ?? ""}`,
  ];
}

export function helpOne({ name, about, words, flags, examples }: Command): readonly string[] {
  return [
    `millrace ${name}${words === "" ? "" : ` ${words}`}`,
    "",
    `  ${about}`,
    ...(Object.keys(flags).length > 0 ? ["", "flags:", ...flagLines(flags).map((line) => `  ${line}`)] : []),
    "",
    "for example:",
    ...examples.map((example) => `  ${example}`),
  ];
}

export const flagText = (name: string, flag: Flags[string]): string =>
  `${flag.short === undefined ? "" : `-${flag.short}, `}--${name}${flag.type === "boolean" ? "" : ` ${flag.value ?? "VALUE"}`}`;

function flagLines(flags: Flags): readonly string[] {
  const shown = Object.entries(flags).map(([name, flag]) => ({ text: flagText(name, flag), about: flag.about }));
  const width = Math.max(...shown.map(({ text }) => text.length)) + 2;
  return shown.map(({ text, about }) => `${text.padEnd(width)}${about}`);
}
