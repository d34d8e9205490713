/** Wrong docs are worse than none: every block marked `sh run` is run, in order, in a folder of its own. */
import { execFile, type ExecFileException } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { fail } from "node:assert/strict";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { findPython } from "#testing/python.ts";

const root = dirname(dirname(import.meta.dirname));
const noShell = process.platform === "win32" ? "needs a POSIX shell" : false;
const python = findPython();

/** Pages mostly wait for nodes that start and stop. */
describe("docs", { concurrency: 3 }, async () => {
  for (const path of await pages("docs/start", "docs/how-to")) await testPage(path);
});

async function testPage(path: string): Promise<void> {
  const text = await readFile(join(root, path), "utf8");
  const blocks = runnable(text);
  const skip = noShell || (text.includes("python3 ") && python.skip) || lacking(text);
  const isTutorial = path.startsWith("docs/start");
  if (blocks.length === 0 && !isTutorial) return;
  test(`${isTutorial ? "the tutorial " : ""}${path} runs`, { skip, timeout: 180_000 }, async () => {
    if (blocks.length === 0) fail(`${path} has no block to run`);
    const folder = await mkdtemp(join(tmpdir(), "millrace-docs-"));
    try {
      const port = String(await freePort());
      await writeFile(join(folder, "page.sh"), script(blocks).replaceAll("7434", port));
      await symlink(join(root, "examples"), join(folder, "examples"));
      if (text.includes("node program.ts")) await installIn(folder);
      await run(folder);
    } finally {
      clearAway(folder);
    }
  });
}

let built: Promise<unknown> | undefined;

/** Programs of the page import this package by its name. */
async function installIn(folder: string): Promise<void> {
  await (built ??= promisify(execFile)(process.execPath, [join(root, "tools", "batch-api.ts")]));
  await mkdir(join(folder, "node_modules"));
  await symlink(root, join(folder, "node_modules", "millrace"));
}

/** A page names the external programs it needs in a comment: `<!-- needs: ccache g++ -->`. */
function lacking(text: string): string | false {
  const programs = /^<!-- needs: ([\w+ -]+) -->$/m.exec(text)?.[1]?.split(" ") ?? [];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const missing = programs.find((program) => !folders.some((folder) => existsSync(join(folder, program))));
  return missing === undefined ? false : `needs ${missing}: not on the path`;
}

async function pages(...folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    folders.map(async (folder) => (await readdir(join(root, folder))).map((name) => `${folder}/${name}`)),
  );
  return found.flat().filter((path) => !path.endsWith("/README.md"));
}

function runnable(text: string): string[] {
  return [...text.matchAll(/^```sh run\n(.*?)^```$/gms)].map((match) => match[1] ?? "");
}

/**
 * `npm start`, `npx millrace` and `python3` are replaced by this checkout and the Python that was found. In a subshell
 * they replace the shell, so that `$!` names the background process. Whatever still runs at the end is stopped.
 */
function script(blocks: readonly string[]): string {
  return `set -eu -o pipefail
really() { if ((BASH_SUBSHELL > 0)); then exec "$@"; else "$@"; fi; }
npm() { [ "$*" = start ] && really "$NODE" "$ROOT/src/cli/main.ts" up; }
npx() { [ "$1" = millrace ] && shift && really "$NODE" "$ROOT/src/cli/main.ts" "$@"; }
node() { "$NODE" "$@"; }
python3() { really "$PYTHON" "$@"; }
trap 'for pid in $(jobs -p); do kill -9 $pid 2>/dev/null || true; done' EXIT
${blocks.join("\n")}
`;
}

async function run(folder: string): Promise<void> {
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
    NODE: process.execPath,
    ROOT: root,
    PYTHON: python.program,
    PYTHONDONTWRITEBYTECODE: "1",
    MILLRACE_DATA: join(folder, "data"),
  };
  await new Promise<void>((resolve, reject) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (!error) return resolve();
      reject(new Error(`the page stopped with ${error.code ?? error.signal}\n${stdout.slice(-3000)}\n${stderr}`));
    };
    execFile("bash", ["page.sh"], { cwd: folder, env, timeout: 170_000, killSignal: "SIGTERM" }, done);
  });
}
