// The order of the test files: longest first, so that no long file starts when all others have ended.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { repoRoot } from "./generate.ts";

/** What test runs keep for the next one. Removed with node_modules. */
export const cacheFolder = join(repoRoot, "node_modules", ".cache", "millrace");

const durationsFile = join(cacheFolder, "test-durations.json");

type Duration = { readonly file: string; readonly ms: number };
type Milliseconds = Readonly<Record<string, number>>;

/** One process of a run: the file it starts from, and the test files that it runs. */
export type TestProcess = { readonly entry: string; readonly files: readonly string[] };

/** By the durations of earlier runs in this checkout and, where there was none, of the list below. */
export function longestFirst(
  processes: readonly TestProcess[],
  earlier: Milliseconds = earlierDurations(),
): readonly TestProcess[] {
  const ofFile = (file: string): number => {
    const path = file.split(sep).join("/");
    return earlier[path] ?? (longestSeconds[path] ?? 0) * 1_000;
  };
  const ms = ({ files }: TestProcess): number => files.reduce((sum, file) => sum + ofFile(file), 0);
  return processes.toSorted((a, b) => ms(b) - ms(a));
}

export function rememberDurations(durations: readonly Duration[]): void {
  const all = { ...earlierDurations(), ...Object.fromEntries(durations.map(({ file, ms }) => [file, Math.round(ms)])) };
  try {
    mkdirSync(cacheFolder, { recursive: true });
    writeFileSync(durationsFile, JSON.stringify(all));
  } catch {
    // A checkout that cannot be written to only loses the better order.
  }
}

function earlierDurations(): Milliseconds {
  try {
    return JSON.parse(readFileSync(durationsFile, "utf8")) as Milliseconds;
  } catch {
    return {};
  }
}

/** For the first run of a checkout. Keep what takes longer than twenty seconds on two cores. */
const longestSeconds: Milliseconds = {
  "e2e/docs/docs.test.ts": 100,
  "e2e/conformance/conformance.test.ts": 90,
  "e2e/hostile/plain-user.test.ts": 36,
  "e2e/builds/execution.test.ts": 32,
  "e2e/console/console.test.ts": 30,
  "e2e/cli/up.test.ts": 29,
  "src/worker/sandbox/sandbox.test.ts": 29,
  "e2e/builds/why.test.ts": 28,
  "src/sim/mutants.test.ts": 27,
  "src/sim/world/mesh.test.ts": 24,
  "e2e/hostile/hostile.test.ts": 24,
  "e2e/batch/tpch.test.ts": 21,
};
