/** `millrace sql` without a query: a shell on a terminal, and a script of queries from a program. */
import { createInterface } from "node:readline";
import type { ExitCode, World } from "#door/command.ts";

/** What the shell does; the node does the rest. */
export type ShellPorts = {
  readonly world: Pick<World, "out" | "note">;
  readonly isTerminal: boolean;
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Runs one query. Aborting it cancels the query. */
  readonly run: (sql: string, how: ShellHow, signal: AbortSignal) => Promise<ExitCode>;
};

export type ShellHow = { readonly json: boolean; readonly explain: boolean };

const help = [
  "A query ends with a semicolon and may have several lines. Ctrl-C cancels the one that runs, Ctrl-D ends the shell.",
  ".explain QUERY;   how a query would be cut into stages",
  ".json on|off      rows as JSON objects, or as a table",
  ".help  .quit",
];

const queryLengthMax = 50_000;

export async function shell({ world, isTerminal, input, output, run }: ShellPorts): Promise<ExitCode> {
  const lines = createInterface({
    input,
    output: isTerminal ? output : undefined,
    terminal: isTerminal,
    historySize: 500,
  });
  let text = "";
  let isJson = false;
  let last: ExitCode = 0;
  let running: AbortController | undefined;
  const prompt = (): void => {
    if (!isTerminal) return;
    lines.setPrompt(text === "" ? "millrace> " : "     ...> ");
    lines.prompt();
  };
  lines.on("SIGINT", () => {
    if (running) return running.abort();
    text = "";
    output.write("\n");
    prompt();
  });
  const perform = async (query: string): Promise<void> => {
    const explained = /^\.explain\s+/i.exec(query);
    running = new AbortController();
    try {
      const how = { json: isJson, explain: explained !== null };
      last = await run(explained ? query.slice(explained[0].length) : query, how, running.signal);
    } catch (error) {
      world.note(error instanceof Error ? error.message : String(error));
      last = 1;
    } finally {
      running = undefined;
    }
  };
  const command = (line: string): "quit" | undefined => {
    const [word = "", value = ""] = line.trim().toLowerCase().split(/\s+/);
    if (word === ".quit" || word === ".exit") return "quit";
    if (word === ".json" && (value === "on" || value === "off")) isJson = value === "on";
    else for (const one of help) world.note(one);
    return undefined;
  };
  if (isTerminal) world.note("Queries over files; end each with a semicolon. .help says more.");
  prompt();
  for await (const line of lines) {
    if (text === "" && /^\s*\.(?!explain\s)/i.test(line)) {
      if (command(line) === "quit") break;
      prompt();
      continue;
    }
    text += `${text === "" ? "" : "\n"}${line}`;
    const { queries, rest } = splitQueries(text);
    text = rest;
    for (const query of queries) {
      await perform(query);
      // A script ends with its first failure.
      if (last !== 0 && !isTerminal) return last;
    }
    if (text.length > queryLengthMax) {
      world.note(`a query has at most ${queryLengthMax} characters`);
      text = "";
      if (!isTerminal) return 2;
    }
    prompt();
  }
  if (text.trim() !== "" && !isTerminal) await perform(text);
  return isTerminal ? 0 : last;
}

/** Semicolons in texts, names and comments end nothing. Pure. */
export function splitQueries(text: string): { readonly queries: readonly string[]; readonly rest: string } {
  const queries: string[] = [];
  let from = 0;
  const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]*)\$[^]*?\$\1\$|--[^\n]*|\/\*[^]*?\*\/|['"]|\/\*|;/g;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    // Open at the end: it goes on in the next line.
    if (/^(?:['"]|\/\*)$/.test(found[0])) break;
    if (found[0] !== ";") continue;
    const query = text.slice(from, found.index).trim();
    if (query !== "") queries.push(query);
    from = found.index + 1;
  }
  const rest = text.slice(from);
  return { queries, rest: rest.trim() === "" ? "" : rest };
}
