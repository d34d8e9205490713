/**
 * Bytes and CPU of differences between releases, beside bsdiff, zstd and casync where they are installed. The releases
 * are the caller's: $MILLRACE_BENCH_RELEASES is a folder with a folder for each pair, and in that the files `old` and
 * `new`.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "#base/random.ts";
import { addDiff } from "#doors/deploy/delta/add-diff.ts";
import { encodePatch } from "#doors/deploy/delta/patch.ts";
import type { Report } from "#bench/report.ts";

type Cost = { readonly bytes: number; readonly cpuSeconds: number };

export function deltas(report: Report): void {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-delta-"));
  try {
    const given = process.env["MILLRACE_BENCH_RELEASES"];
    const pairs = given === undefined ? [madeUp(folder)] : pairsIn(given);
    const rows = pairs.map((pair) => measure(report, pair, folder));
    const columns = ["release", "MB", "ours: share; CPU s", "bsdiff", "zstd --patch-from -12", "casync: new chunks"];
    report.table("Differences between releases, share of the new file and CPU seconds", columns, rows);
    if (given === undefined) report.say("These releases were made up; name real ones by $MILLRACE_BENCH_RELEASES.");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Pair = { readonly name: string; readonly old: string; readonly fresh: string };

function measure(report: Report, { name, old, fresh }: Pair, folder: string): readonly (string | number)[] {
  const size = statSync(fresh).size;
  const out = join(folder, "out");
  const [oldBytes, freshBytes] = [readFileSync(old), readFileSync(fresh)];
  const before = process.cpuUsage();
  const patch = encodePatch(addDiff(oldBytes, freshBytes));
  const used = process.cpuUsage(before);
  const ours: Cost = { bytes: patch.length, cpuSeconds: (used.user + used.system) / 1e6 };
  const bsdiff = costOf(["bsdiff", old, fresh, out], out);
  const zstd = costOf(["zstd", "-q", "-f", "-12", "--long=27", `--patch-from=${old}`, fresh, "-o", out], out);
  const told = (cost: Cost | undefined): string =>
    cost ? `${((100 * cost.bytes) / size).toFixed(1)} %; ${cost.cpuSeconds.toFixed(1)}` : "not installed";
  if (bsdiff) {
    report.target({ what: `${name}: bytes of bsdiff's`, atMost: 1.3, got: ours.bytes / bsdiff.bytes });
    report.target({ what: `${name}: CPU of bsdiff's`, atMost: 1 / 8, got: ours.cpuSeconds / bsdiff.cpuSeconds });
  }
  const chunks = newChunks(old, fresh, folder);
  const casync = chunks ? told(chunks) : "not installed";
  return [name, (size / 1e6).toFixed(1), told(ours), told(bsdiff), told(zstd), casync];
}

/** Undefined where the program is not installed. */
function costOf(command: readonly string[], out: string): Cost | undefined {
  rmSync(out, { force: true });
  const timed = spawnSync("bash", ["-c", 'TIMEFORMAT="%U %S"; time "$@"', "bench", ...command], { encoding: "utf8" });
  if (timed.status !== 0 || !existsSync(out)) return undefined;
  const [user = 0, system = 0] = (timed.stderr.trim().split("\n").at(-1) ?? "").split(" ").map(Number);
  return { bytes: statSync(out).size, cpuSeconds: user + system };
}

/** The compressed chunks of the new file that the old one does not have. */
function newChunks(old: string, fresh: string, folder: string): Cost | undefined {
  const store = join(folder, "store.castr");
  rmSync(store, { recursive: true, force: true });
  const index = join(folder, "index.caibx");
  const make = (file: string) => costOf(["casync", "make", `--store=${store}`, index, file], index);
  if (!make(old)) return undefined;
  const before = bytesBelow(store);
  const made = make(fresh);
  return made && { bytes: bytesBelow(store) - before, cpuSeconds: made.cpuSeconds };
}

const bytesBelow = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

const pairsIn = (folder: string): readonly Pair[] =>
  readdirSync(folder)
    .map((name) => ({ name, old: join(folder, name, "old"), fresh: join(folder, name, "new") }))
    .filter(({ old, fresh }) => existsSync(old) && existsSync(fresh));

/** Something like a program that was linked again: code with addresses, a part of which has moved. */
function madeUp(folder: string): Pair {
  const random = new Random("delta");
  const words = Array.from({ length: 300_000 }, () => random.below(2 ** 31));
  const linked = (movedBy: number): Buffer => {
    const bytes = Buffer.alloc(words.length * 4);
    for (const [at, word] of words.entries())
      bytes.writeUInt32LE(at % 5 === 0 && at > 10_000 ? word + movedBy : word, at * 4);
    return bytes;
  };
  const pair = { name: "made up", old: join(folder, "old"), fresh: join(folder, "new") };
  writeFileSync(pair.old, linked(0));
  writeFileSync(pair.fresh, Buffer.concat([linked(64), Buffer.from("a little more")]));
  return pair;
}
