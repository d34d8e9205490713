/** The alert rules: they parse, name metrics that exist, and have the thresholds that operators were promised. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import { ciFamilies } from "#doors/ci/metrics/families.ts";
import { deployFamilies } from "#doors/deploy/metrics/families.ts";

const folder = join(dirname(import.meta.dirname), "deploy/prometheus");
type Rule = { readonly alert: string; readonly expr: string; readonly for?: string };
const rulesIn = (file: string): readonly Rule[] =>
  (parse(readFileSync(join(folder, file), "utf8")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
    (one) => one.rules,
  );

const promised: Readonly<Record<string, readonly string[]>> = {
  "ci-alerts.yml": [
    "CiQueueDrainsSlowly 300 10m",
    "CiLeasesExpire 10 at once",
    "CiJobsWaitLong 60 5m",
    "CiSchedulerLags 30 at once",
    "CiStepsFail 0.2 15m",
    "CiDatabaseReplicaLags 5 at once",
  ],
  "deploy-alerts.yml": [
    "DeployReleaseTakesLong 1800 1m",
    "DeployBuildsTakeLong 900 10m",
    "DeployReleasesFail 0.2 15m",
    "DeployRollsBack 0 at once",
    "DeployMachinesSilent 0.02 5m",
    "DeployMachinesDrift 10 30m",
    "DeployMachinesRefused 100 at once",
  ],
};

const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined;
const skip = hasPromtool ? false : "needs promtool: the Debian package prometheus is not installed";

for (const [file, wanted] of Object.entries(promised)) {
  const rules = rulesIn(file);

  test(`every alert of ${file} is about metrics that a node serves, with the promised thresholds`, () => {
    const registry = new MetricsRegistry();
    ciFamilies(registry);
    deployFamilies(registry);
    const served = new Set([...registry.text().matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name]) => name));
    for (const { alert, expr } of rules)
      for (const [name] of expr.matchAll(/\b(?:cicd|millrace)_[a-z_]+/g))
        ok(served.has(name.replace(/_bucket$/, "")), `${alert} looks at ${name}, which is not served`);
    deepEqual(
      rules.map((rule) => `${rule.alert} ${/> ([\d.]+)$/.exec(rule.expr)?.[1]} ${rule.for ?? "at once"}`),
      wanted,
    );
  });

  test(`promtool accepts ${file}`, { skip }, () => {
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", join(folder, file)], {
      encoding: "utf8",
    });
    equal(status, 0, stdout + stderr);
    ok(stdout.includes(`${rules.length} rules found`), stdout);
  });
}
