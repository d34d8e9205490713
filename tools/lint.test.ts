// A lint rule that is misspelled, or whose pattern is not understood, reports nothing and looks fine.
// So plant one violation of each kind and demand that it is found.
import { deepEqual } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { binOf } from "./check.ts";
import { repoRoot } from "./generate.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "millrace-lint-")));
after(() => rmSync(folder, { recursive: true, force: true }));

const imports = (from: string): string => `import { x } from "${from}";\nexport const y = x;\n`;

/** File -> its content, and the rules that must report it. */
const planted: Readonly<Record<string, readonly [source: string, ...rules: string[]]>> = {
  "src/kernel/to-journal.ts": [imports("#journal/x.ts"), "no-restricted-imports"],
  "src/kernel/to-base.ts": [imports("#base/x.ts")],
  "src/base/to-kernel.ts": [imports("#kernel/x.ts"), "no-restricted-imports"],
  "src/doors/ci/to-build.ts": [imports("#doors/build/x.ts"), "no-restricted-imports"],
  "src/doors/ci/to-worker.ts": [imports("#worker/x.ts")],
  "src/app/to-sim.ts": [imports("#sim/x.ts"), "no-restricted-imports"],
  "src/app/to-door.ts": [imports("#doors/shell/x.ts")],
  "src/sim/to-app.ts": [imports("#app/x.ts")],
  "src/shard/climbs.ts": [imports("../kernel/x.ts"), "no-restricted-imports"],
  "src/shard/uses-test-support.ts": [imports("#testing/x.ts"), "no-restricted-imports"],
  "src/shard/host/host.test.ts": [imports("#testing/x.ts")],
  "src/kernel/node.ts": ['export { readFileSync } from "node:fs";\n', "no-restricted-imports"],
  "src/kernel/date.ts": ["export const now = (): number => Date.now();\n", "no-restricted-globals"],
  "src/kernel/timer.ts": ["setTimeout(() => {}, 1);\n", "no-restricted-globals"],
  "src/kernel/process.ts": ["export const pid = process.pid;\n", "no-restricted-globals"],
  "src/base/fetch.ts": ['export const get = (): Promise<unknown> => fetch("x");\n', "no-restricted-globals"],
  "src/base/chance.ts": ["export const dice = (): number => Math.random();\n", "no-restricted-properties"],
  "src/base/global.ts": ["export const now = (): number => globalThis.Date.now();\n", "no-restricted-properties"],
  "src/shard/date.ts": ["export const now = (): number => Date.now();\n"],
  "src/kernel/pure.test.ts": ['import { test } from "node:test";\ntest("x", () => void Date.now());\n'],
  "src/blobs/a.ts": ['import { b } from "./b.ts";\nexport const a = (): number => b();\n', "no-cycle"],
  "src/blobs/b.ts": ['import { a } from "./a.ts";\nexport const b = (): number => a();\n', "no-cycle"],
  "src/worker/default.ts": ["export default 1;\n", "no-default-export"],
  "src/worker/floating.ts": [
    "async function run(): Promise<void> {}\nexport const go = (): void => {\n  run();\n};\n",
    "no-floating-promises",
  ],
  "src/worker/misused.ts": [
    "async function run(): Promise<boolean> {\n  return true;\n}\nexport const go = (): number => (run() ? 1 : 2);\n",
    "no-misused-promises",
  ],
  "src/worker/switch.ts": [
    'export function f(x: "a" | "b"): void {\n  switch (x) {\n    case "a":\n      break;\n  }\n}\n',
    "switch-exhaustiveness-check",
  ],
  "src/worker/thenable.ts": ["export async function f(n: number): Promise<void> {\n  await n;\n}\n", "await-thenable"],
};

// Its prebuilt program is optional, as for every platform.
const works = spawnSync(process.execPath, [binOf("oxlint"), "--version"]).status === 0;
const skip = works ? false : "needs oxlint: it has no program for this platform";

test("every planted violation is reported, and nothing else", { skip }, () => {
  cpSync(join(repoRoot, ".oxlintrc.json"), join(folder, ".oxlintrc.json"));
  cpSync(join(repoRoot, "tsconfig.json"), join(folder, "tsconfig.json"));
  cpSync(join(repoRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(repoRoot, "node_modules"), join(folder, "node_modules"), "junction");
  const targets = ["base", "kernel", "journal", "worker", "app", "sim", "doors/build", "doors/shell"];
  for (const room of targets) write(`src/${room}/x.ts`, "export const x = 1;\n");
  write("testing/x.ts", "export const x = 1;\n");
  for (const [file, [source]] of Object.entries(planted)) write(file, source);

  const { stdout } = spawnSync(process.execPath, [binOf("oxlint"), "--format", "json"], {
    cwd: folder,
    encoding: "utf8",
  });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly { code: string; filename: string }[] };
  const found: Record<string, Set<string>> = {};
  for (const { code, filename } of diagnostics)
    (found[filename] ??= new Set()).add(/\(([^)]+)\)/.exec(code)?.[1] ?? code);

  deepEqual(
    Object.fromEntries(Object.keys(planted).map((file) => [file, [...(found[file] ?? [])]])),
    Object.fromEntries(Object.entries(planted).map(([file, [, ...rules]]) => [file, rules])),
  );
});

function write(file: string, content: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), content);
}
