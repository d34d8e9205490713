// The program. What it is made of is compiled once and kept: without this every start reads and strips a hundred
// files again, which takes most of the time of a short command.
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// In a folder of the user's own: what is found there is run.
enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "millrace", "compiled"));

// A reader that has seen enough (`| head`) is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

const { processTerminal, runLine } = await import("./line.ts");
process.exitCode = await runLine(process.argv.slice(2), processTerminal());
