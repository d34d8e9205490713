/** Runs one command line against a node's data folder, and collects its whole output. */
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
  });
  return { code, out, notes };
}
