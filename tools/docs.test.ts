/** Tutorials that lie are worse than none: every block marked `sh run` is run, in order, in a folder of its own. */
import { execFile, type ExecFileException } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { fail } from "node:assert/strict";

const root = dirname(import.meta.dirname);
const tutorials = join(root, "docs", "start");
const skip = process.platform === "win32" ? "needs a POSIX shell" : false;

for (const name of (await readdir(tutorials)).filter((file) => file !== "README.md"))
  test(`the tutorial ${name} runs`, { skip, timeout: 180_000 }, async () => {
    const blocks = runnable(await readFile(join(tutorials, name), "utf8"));
    if (blocks.length === 0) fail(`${name} has no block to run`);
    const folder = await mkdtemp(join(tmpdir(), "millrace-docs-"));
    try {
      await writeFile(join(folder, "tutorial.sh"), script(blocks));
      await run(folder);
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });

const runnable = (text: string): string[] =>
  [...text.matchAll(/^```sh run\n(.*?)^```$/gms)].map((match) => match[1] ?? "");

/** `npm start` and `npx millrace` mean this checkout; whatever is still running at the end is stopped, by pid. */
const script = (blocks: readonly string[]): string => `set -eu -o pipefail
npm() { [ "$*" = start ] && exec "$NODE" "$ROOT/src/cli/main.ts" up; }
npx() { [ "$1" = millrace ] && shift && "$NODE" "$ROOT/src/cli/main.ts" "$@"; }
node() { "$NODE" "$@"; }
trap 'for pid in $(jobs -p); do kill -9 $pid 2>/dev/null || true; done' EXIT
${blocks.join("\n")}
`;

async function run(folder: string): Promise<void> {
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
    NODE: process.execPath,
    ROOT: root,
    MILLRACE_DATA: join(folder, "data"),
  };
  await new Promise<void>((resolve, reject) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (!error) return resolve();
      reject(new Error(`the tutorial stopped with ${error.code ?? error.signal}\n${stdout.slice(-3000)}\n${stderr}`));
    };
    execFile("bash", ["tutorial.sh"], { cwd: folder, env, timeout: 170_000, killSignal: "SIGTERM" }, done);
  });
}
