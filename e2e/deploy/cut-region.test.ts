/** A region is cut off while waves run: it keeps its last goal, nothing in it stops, and it reconciles by version. */
import { equal, ok } from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { CutLine } from "./cut-line.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const far = ["us1", "us2"];
const service = `
service: web
build: { run: "mkdir out && cp run.txt out/", output: out }
run:
  exec: [sleep, "100000"]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 100ms
targets: { labels: [role=web], regions: [eu, us] }
waves: [ { share: "100%", regions: [eu] }, { share: "100%", regions: [us] } ]
health: { silentAfter: 10m }
`;
const limits = { limitMs: 120_000, everyMs: 200 };

describe("a region that is cut off during a wave", { skip, timeout: 480_000 }, () => {
  let fleet: DeployFleet;
  let line: CutLine;
  before(async () => {
    fleet = await DeployFleet.open(["eu1"]);
    line = await CutLine.to(fleet.node.address);
    for (const machine of far) fleet.startAgentAt(machine, line.url, "us");
    await until("all machines are attached", () => fleet.machines().length === 3, limits);
  });
  after(async () => {
    await line[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  const release = (text: string): string => {
    fleet.commit(service.replaceAll("run.txt", `${text}.txt`), text, `${text}.txt`);
    return fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"))[0] ?? "";
  };
  const phaseIs = async (job: string, phase: string): Promise<void> =>
    await until(`${job} ${phase}`, async () => (await fleet.phase(job)) === phase, limits);
  const waveIsWritten = async (job: string): Promise<void> =>
    await until(
      `the goal of ${job} is written for the region`,
      async () => (await fleet.shown(job)).regions.some((one) => one.region === "us" && one.isGoal),
      limits,
    );
  /** The text file of the version that runs. */
  const current = (machine: string): string => {
    const folder = join(fleet.folder, machine, "services", "web", "current");
    return existsSync(folder) ? (readdirSync(folder).find((name) => name.endsWith(".txt")) ?? "") : "";
  };
  const goalVersion = (machine: string): number => {
    const { body } = JSON.parse(readFileSync(join(fleet.folder, machine, "services", "web", "goal.json"), "utf8")) as {
      body: string;
    };
    return (JSON.parse(body) as { version: number }).version;
  };
  const hasSeen = (machine: string, text: string): boolean =>
    readdirSync(join(fleet.folder, machine, "services", "web", "versions"), { recursive: true }).some((name) =>
      String(name).endsWith(`${text}.txt`),
    );

  test("DEPLOY-26: goes on with what it has, and follows when it is back: the wave waited for it", async () => {
    await phaseIs(release("one"), "SUCCEEDED");
    // The end of a release writes one more goal: its version is the good one now.
    await until("all have heard of the end", () => far.every((machine) => goalVersion(machine) === 2), limits);
    const before = far.map((machine) => [goalVersion(machine), fleet.servicePid(machine)].join());
    line.cut();
    const job = release("two");
    await waveIsWritten(job);
    equal(current("eu1"), "two.txt", "the other region has it");
    equal(await fleet.phase(job), "RUNNING", "no wave passes without its machines");
    equal(far.map((machine) => [goalVersion(machine), fleet.servicePid(machine)].join()).join(), before.join());
    equal(far.map(current).join(), "one.txt,one.txt");
    line.mend();
    await phaseIs(job, "SUCCEEDED");
    equal(far.map(current).join(), "two.txt,two.txt");
  });

  test("DEPLOY-6: jumps to the newest goal, and never runs what was given up meanwhile", async () => {
    line.cut();
    const given = release("three");
    await waveIsWritten(given);
    const next = release("four");
    await waveIsWritten(next);
    line.mend();
    await phaseIs(next, "SUCCEEDED");
    equal(["eu1", ...far].map(current).join(), "four.txt,four.txt,four.txt");
    ok(
      far.every((machine) => !hasSeen(machine, "three")),
      "it was skipped",
    );
    ok((await fleet.phase(given)) !== "SUCCEEDED");
    await until("they follow one goal", () => goalVersion("us1") === goalVersion("us2"), limits);
  });
});
