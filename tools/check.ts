// `npm run check`: format, generated files, typed lint, types. Each step says how to repair it.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { repoRoot } from "./generate.ts";

const require = createRequire(import.meta.url);

type Step = { readonly name: string; readonly command: readonly string[]; readonly repair: string };

const lintRepair = "npx oxlint shows the places; with --fix it repairs some";

const steps: readonly Step[] = [
  { name: "format", command: [binOf("oxfmt"), "--check"], repair: "npm run format" },
  { name: "generated files", command: [join("tools", "generate.ts"), "--check"], repair: "npm run generate" },
  { name: "lint", command: [binOf("oxlint"), "--format=unix"], repair: lintRepair },
  { name: "types", command: [binOf("typescript", "tsc")], repair: "see the messages above" },
  {
    name: "types of the console",
    command: [binOf("typescript", "tsc"), "-p", join("src", "console")],
    repair: "see the messages above",
  },
];

/** The JavaScript file behind an npm package's command, so that it runs on this very Node. */
export function binOf(packageName: string, command: string = packageName): string {
  const manifest = require.resolve(`${packageName}/package.json`);
  const bin = (JSON.parse(readFileSync(manifest, "utf8")) as { bin: Record<string, string> }).bin[command];
  if (bin === undefined) throw new Error(`${packageName} has no command ${command}`);
  return join(dirname(manifest), bin);
}

if (import.meta.main) {
  const failed = steps.filter(({ name, command, repair }) => {
    console.log(`\n== ${name}`);
    const { status } = spawnSync(process.execPath, command, { cwd: repoRoot, stdio: "inherit" });
    if (status !== 0) console.log(`${name}: failed (to repair: ${repair})`);
    return status !== 0;
  });
  const summary = failed.length === 0 ? "all passed" : `failed: ${failed.map(({ name }) => name).join(", ")}`;
  console.log(`\ncheck: ${summary}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}
