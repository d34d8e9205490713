/** One command line against a node's data folder, and all that it said. */
import { runLine } from "#cli/line.ts";

export async function cliLine(data: string, ...args: readonly string[]) {
  const out: string[] = [];
  const notes: string[] = [];
  const code = await runLine([...args, "--data", data], {
    env: {},
    isTerminal: false,
    out: (line) => out.push(line),
    note: (line) => notes.push(line),
    progress: () => {},
    connect: () => Promise.reject(new Error("commands that ask over HTTP do not need this")),
  });
  return { code, out, notes };
}
