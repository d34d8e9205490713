// Which test files share a process. Starting Node and loading a room's modules costs more than most unit tests, so the
// files of the rooms below run many to a process, one after the other, each as a suite that bears its path.
//
// A file shares a process if it lies in one of `sharingFolders` and its text has none of `processWide`. To see whether
// sharing is what makes a test fail, run it alone: npm test -- --apart <path>.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { repoRoot } from "./generate.ts";
import { cacheFolder, type TestProcess } from "./test-order.ts";

/** Folder -> how many of its files share a process: few where tests mostly wait, so that such processes overlap. */
const sharingFolders: Readonly<Record<string, number>> = {
  "e2e/node/": 4,
  "src/": 24,
  "src/app/": 12,
  "src/cli/": 8,
  "src/journal/": 8,
  "src/shard/": 10,
  "src/sim/": 3,
  "src/worker/": 6,
  "testing/": 5,
};

/** What changes, ends or measures the whole process: a file with one of these gets a process of its own. */
const processWide: readonly RegExp[] = [
  /process\.env(\.\w+|\[[^\]]+\])\s*(\?\?|\|\|)?=[^=]/, // sets an environment variable
  /process\.(chdir|exit|exitCode|umask|kill|on|once|pid|ppid|setuid|memoryUsage|cpuUsage|resourceUsage)\b/,
  /mock\.timers|mock\.module|globalThis/,
  /node:(child_process|cluster|worker_threads|inspector|v8|vm)"/,
  /perf_hooks|performance\.(now|mark|measure|eventLoopUtilization)/,
];

/** The folder of the table above whose files this one may share a process with, if it may. */
export function sharingFolder(file: string, text: string): string | undefined {
  const path = file.split(sep).join("/");
  const folders = Object.keys(sharingFolders).filter((folder) => path.startsWith(folder));
  return processWide.some((pattern) => pattern.test(text)) ? undefined : folders.toSorted(byLength).at(-1);
}

const byLength = (a: string, b: string): number => a.length - b.length;

/** Deals the files, given by their paths from the root of the repository, to processes. */
export function testProcesses(files: readonly string[], entries: string): readonly TestProcess[] {
  const byFolder = Map.groupBy(files, (file) => sharingFolder(file, readFileSync(join(repoRoot, file), "utf8")));
  const groups = [...byFolder].flatMap(([folder, each]) => inGroups(each, sharingFolders[folder ?? ""] ?? 1));
  return groups.map((group, at) => {
    const [first = "", ...others] = group;
    return others.length === 0 ? alone(first) : together(group, join(entries, `together-${at + 1}.mjs`));
  });
}

/** Imports each file within a suite, so that its hooks, failures and durations stay its own. */
export function together(files: readonly string[], entry: string): TestProcess {
  const suites = files.map((file) => {
    const url = pathToFileURL(resolve(repoRoot, file)).href;
    return `suite(${JSON.stringify(file)}, async () => void (await import(${JSON.stringify(url)})));`;
  });
  writeFileSync(entry, [`import { suite } from "node:test";`, ...suites, ""].join("\n"));
  return { entry, files };
}

export function alone(file: string): TestProcess {
  return { entry: join(repoRoot, file), files: [file] };
}

function inGroups(files: readonly string[], size: number): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / size);
  return Array.from({ length: count }, (_, at) => files.slice(at * size, (at + 1) * size));
}

/** A folder for the files that shared processes start from, removed when the run is over. */
export function entriesFolder(): { readonly path: string; remove(): void } {
  mkdirSync(cacheFolder, { recursive: true });
  const path = mkdtempSync(join(cacheFolder, "entries-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
