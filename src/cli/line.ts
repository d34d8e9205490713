import { parseLine } from "./parse.ts";
import type { Command, ExitCode, World } from "#door/command.ts";
import { tableFor } from "./table.ts";

/** The world without its HTTP client, which `runLine` adds. */
export type Terminal = Omit<World, "http">;

/** Runs one command line. The terminal is given, so that tests can look at what was said; so is the table. */
export async function runLine(
  args: readonly string[],
  terminal: Terminal,
  commands?: readonly Command[],
): Promise<ExitCode> {
  const http: World["http"] = async (values) => (await import("#app/client/server.ts")).httpOf(values, terminal.env);
  const world: World = { ...terminal, http };
  const table = commands ?? (await tableFor(args));
  const line = args[0] === "version" ? ["--version"] : args;
  const parsed = args[0] === "help" ? helpOn(args.slice(1), table) : parseLine(line, table);
  switch (parsed.kind) {
    case "version":
      world.out((await import("#app/version.ts")).version);
      return 0;
    case "help": {
      const { helpAll, helpGroup, helpOne } = await import("./help.ts");
      const { topic } = parsed;
      const lines = topic === undefined ? helpAll(table) : "name" in topic ? helpOne(topic) : helpGroup(topic);
      for (const each of lines) world.out(each);
      return 0;
    }
    case "wrong":
      world.note(parsed.problem);
      world.note(`next: ${parsed.next}`);
      return 2;
    case "run":
      try {
        return await parsed.command.run(parsed.invocation, world);
      } catch (error) {
        world.progress("");
        const { explain, explainJson } = await import("./errors.ts");
        const { name } = parsed.command;
        if (parsed.invocation.values["json"]) world.note(explainJson(error, name));
        else for (const each of explain(error, name)) world.note(each);
        return 1;
      }
    default:
      return parsed satisfies never;
  }
}

function helpOn(topic: readonly string[], table: readonly Command[]): ReturnType<typeof parseLine> {
  return topic.length === 0 ? { kind: "help", topic: undefined } : parseLine([...topic, "--help"], table);
}

/** The terminal, or whatever stands in its place. */
export function processTerminal(): Terminal {
  const isTerminal = process.stderr.isTTY;
  let drawn = "";
  const clear = (): void => {
    if (drawn !== "") process.stderr.write("\r\u001b[K");
    drawn = "";
  };
  const progress = (line: string): void => {
    if (!isTerminal) return;
    clear();
    drawn = line.slice(0, (process.stderr.columns || 80) - 1);
    process.stderr.write(drawn);
  };
  const out = (line: string): void => {
    const again = drawn;
    clear();
    process.stdout.write(`${line}\n`);
    progress(again);
  };
  const note = (line: string): void => {
    clear();
    process.stderr.write(`${line}\n`);
  };
  const isOutTerminal = process.stdout.isTTY;
  return { env: process.env, isTerminal, isOutTerminal, out, note, progress };
}
