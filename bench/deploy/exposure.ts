/**
 * How long machines run a bad version: the product's judge, asked while reports come in, beside fixed steps that look
 * at the end of each bake. Simulated: what a machine says and when is drawn at random; the verdicts are the product's.
 */
import { Random } from "#base/random.ts";
import { membersOf } from "#doors/deploy/goal/membership.ts";
import { judge, standingOf, type MachineReport } from "#doors/deploy/health/judge.ts";
import { ServiceFile } from "#doors/deploy/service/service-file.ts";
import type { Report } from "#bench/report.ts";

const lookMs = 2_000;
const startMs = 5_000;
/** When a machine that meets the defect says so, on average. */
const noticeMs = 30_000;
const backMs = 3_000;

const file = ServiceFile.parse({
  service: "web",
  run: { exec: "run" },
  targets: { regions: ["eu"] },
  waves: [
    { share: "1%", bake: "2m" },
    { share: "10%", bake: "2m" },
    { share: "50%", bake: "2m" },
    { share: "100%", bake: "2m" },
  ],
  health: { silentAfter: "10m" },
});

type Machine = { readonly name: string; readonly startsMs: number; readonly failsMs: number };

export function exposure(report: Report, machines: number, runs: number): void {
  const rows = [0.01, 0.1, 1].map((defect) => {
    const [ours, fixed] = [mean(defect, machines, runs, true), mean(defect, machines, runs, false)];
    const least = defect === 0.01 ? undefined : 0.5;
    if (least !== undefined)
      report.target({ what: `bad machine-minutes, defect of ${defect * 100} %`, atMost: least, got: ours / fixed });
    report.figure(`exposure_${defect * 100}`, ours / fixed);
    return [`${defect * 100} %`, ours.toFixed(0), fixed.toFixed(0), (ours / fixed).toFixed(2)];
  });
  const title = `Bad machine-minutes until all are back, ${machines} machines, mean of ${runs} (simulated)`;
  report.table(title, ["machines that meet the defect", "sequential test", "fixed steps", "ratio"], rows);
}

function mean(defect: number, machines: number, runs: number, isEarly: boolean): number {
  let sum = 0;
  for (let run = 0; run < runs; run += 1) sum += oneRelease(defect, machines, new Random(`${run}:${defect}`), isEarly);
  return sum / runs;
}

/** In machine-minutes: of machines that have the defect and were on the new version. */
function oneRelease(defect: number, count: number, random: Random, isEarly: boolean): number {
  const release = `r${random.below(1_000_000)}`;
  const fleet = Array.from({ length: count }, (_, i): Machine & { readonly isBad: boolean } => {
    const isBad = random.fraction() < defect;
    const startsMs = startMs * (0.5 + random.fraction());
    const failsMs = isBad ? startsMs - Math.log(1 - random.fraction()) * noticeMs : Infinity;
    return { name: `m${i}`, startsMs, failsMs, isBad };
  });
  const all = fleet.map(({ name }) => name);
  const onSince = new Map<string, number>();
  let nowMs = 0;
  for (const wave of file.waves) {
    const names = new Set(membersOf(all, release, wave.share));
    const members = fleet.filter(({ name }) => names.has(name));
    const activatedMs = nowMs;
    for (const { name } of members) if (!onSince.has(name)) onSince.set(name, nowMs);
    for (let verdict = "wait"; verdict === "wait"; nowMs += lookMs) {
      const counts = { machines: members.length, healthy: 0, failed: 0, silent: 0, working: 0 };
      const question = { limits: file.health, bakeMs: wave.bake, activatedAgoMs: nowMs - activatedMs };
      for (const one of members) {
        const sinceMs = nowMs - (onSince.get(one.name) ?? nowMs);
        const state = sinceMs >= one.failsMs ? "reverted" : sinceMs >= one.startsMs ? "healthy" : "activating";
        const said: Pick<MachineReport, "state" | "running" | "agoMs"> = { state, running: "new", agoMs: 0 };
        const about = { manifest: "new", activatedAgoMs: question.activatedAgoMs, silentAfterMs: 600_000 };
        counts[standingOf(said, about)] += 1;
      }
      // Fixed steps look once, when the bake is over.
      if (!isEarly && question.activatedAgoMs < wave.bake) continue;
      ({ verdict } = judge(counts, question));
      if (!isEarly && verdict === "wait") verdict = "unhealthy";
      if (verdict === "unhealthy") return badMinutes(fleet, onSince, nowMs + backMs);
    }
  }
  return badMinutes(fleet, onSince, nowMs + backMs);
}

/** A machine that noticed went back by itself. */
function badMinutes(
  fleet: readonly (Machine & { readonly isBad: boolean })[],
  onSince: ReadonlyMap<string, number>,
  endMs: number,
): number {
  let ms = 0;
  for (const { name, isBad, failsMs } of fleet) {
    const since = onSince.get(name);
    if (isBad && since !== undefined) ms += Math.max(0, Math.min(endMs - since, failsMs));
  }
  return ms / 60_000;
}
