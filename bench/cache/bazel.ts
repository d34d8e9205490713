/** A real Bazel with each cache: a first build, and the same again from the cache alone. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bazel, bazelMissing, type Built } from "#e2e/bazel/bazel.ts";
import { makeWorkspace } from "#e2e/bazel/workspace.ts";
import type { Serving } from "#bench/edge/contestants.ts";
import type { Figure, Report } from "#bench/report.ts";

export type BazelEntrant = { readonly name: string; readonly serving: Serving | undefined };

const columns = ["", "cold s", "warm s", "hits", "server CPU ms cold", "server CPU ms warm"];
const title = "Bazel, a small C++ workspace, four jobs at once: cold, and cleaned and built again";

export async function bazelBuilds(report: Report, entrants: readonly BazelEntrant[]): Promise<void> {
  const missing = bazelMissing();
  if (missing !== undefined) return report.table(title, columns, [["not shown", missing, "", "", "", ""]]);
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-bazel-"));
  const bazel = new Bazel(makeWorkspace(folder, randomUUID()), join(folder, "bazel"));
  const rows: Figure[][] = [];
  try {
    await bazel.build(["//..."], []); // so that no contestant pays for Bazel's own start
    rows.push(["no cache", (await timed(bazel, [])).seconds, "", "", "", ""]);
    for (const { name, serving } of entrants) {
      if (!serving) continue;
      const flags = [`--remote_cache=grpc://127.0.0.1:${serving.port}`];
      const cold = await timed(bazel, flags, serving);
      const warm = await timed(bazel, flags, serving);
      const hits = warm.built.processes.get("remote cache hit") ?? 0;
      rows.push([name, cold.seconds, warm.seconds, hits, cold.cpuMs, warm.cpuMs]);
      if (hits === 0) throw new Error(`${name}: the second build had nothing from the cache:\n${warm.built.output}`);
    }
  } finally {
    await bazel.stop();
    execFileSync("chmod", ["-R", "u+w", folder]); // Bazel makes its outputs read-only
    rmSync(folder, { recursive: true, force: true });
  }
  report.table(title, columns, rows);
}

type Timed = { readonly built: Built; readonly seconds: number; readonly cpuMs: number };

async function timed(bazel: Bazel, flags: readonly string[], serving?: Serving): Promise<Timed> {
  await bazel.clean();
  const cpuBefore = serving?.cpuUs ?? 0;
  const beganMono = performance.now();
  const built = await bazel.build(["//..."], flags);
  const seconds = (performance.now() - beganMono) / 1_000;
  return { built, seconds, cpuMs: ((serving?.cpuUs ?? 0) - cpuBefore) / 1_000 };
}
