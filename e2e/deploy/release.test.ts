/** From a commit to machines and back, with a real node, real agents and real services. */
import { equal, match, notEqual, ok } from "node:assert/strict";
import { readlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = ["m1", "m2", "m3"];
const service = `
service: web
build: { run: "mkdir out && cp server.mjs out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 5s, every: 50ms }
  drain: 1s
targets: { labels: [role=web], regions: [eu] }
waves: [ { share: "34%", bake: 500ms }, { share: "100%" } ]
`;
const stays = (text: string): string => `setInterval(() => {}, 1000); console.log(${JSON.stringify(text)});\n`;
const limits = { limitMs: 60_000, everyMs: 200 };

describe("a release", { skip, timeout: 240_000 }, () => {
  let fleet: DeployFleet;
  before(async () => {
    fleet = await DeployFleet.open(machines);
    await until("all machines are attached", () => fleet.machines().length === machines.length, limits);
  });
  after(async () => await fleet[Symbol.asyncDispose]());

  const release = (): string => fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"))[0] ?? "";
  const ended = async (job: string): Promise<string> => {
    let phase = "";
    await until(
      `${job} has ended`,
      async () => ["SUCCEEDED", "FAILED", "CANCELLED"].includes((phase = await fleet.phase(job))),
      limits,
    );
    return phase;
  };
  /** The manifests that answer, one for each machine. */
  const running = (): ReadonlySet<string | null> =>
    new Set(fleet.machines().flatMap(({ reports }) => reports.map((report) => report.running)));
  let good: string | null = null;

  test("is built, and reaches every machine in waves", async () => {
    fleet.commit(service, stays("one"));
    equal(await ended(release()), "SUCCEEDED");
    await until("all machines run one version", () => running().size === 1 && !running().has(null), limits);
    [good = null] = running();
    match(readlinkSync(join(fleet.folder, "m1", "services", "web", "current")), /^versions\//);
  });

  test("that does not stay up is rolled back everywhere, and the release failed", async () => {
    fleet.commit(service, "process.exit(3);\n");
    equal(await ended(release()), "FAILED");
    await until("all machines run the good version", () => running().size === 1 && running().has(good), limits);
  });

  test("goes on through kill -9 of an agent and of the node, and no service stops", async () => {
    const before = machines.map((machine) => fleet.servicePid(machine));
    await fleet.killAgent("m1");
    await fleet.node.kill();
    await fleet.node.start();
    fleet.startAgent("m1");
    await until("all machines are attached again", () => running().size === 1 && running().has(good), limits);
    equal(machines.map((machine) => fleet.servicePid(machine)).join(), before.join(), "no service was restarted");
    ok(before.every((pid) => pid !== undefined && isAlive(pid)));
  });

  test("and a rollback by hand goes back to the version before, without a build", async () => {
    fleet.commit(service, stays("two"));
    equal(await ended(release()), "SUCCEEDED");
    await until("all machines run the new version", () => running().size === 1 && !running().has(good), limits);
    const [newer = null] = running();
    notEqual(newer, good);
    const [job = ""] = fleet.millrace("deploy", "rollback", "web", "--region", "eu");
    equal(await ended(job), "SUCCEEDED");
    await until("all machines run the version before", () => running().size === 1 && running().has(good), limits);
  });

  test("is not activated while the service is halted", async () => {
    fleet.millrace("deploy", "halt", "web", "--region", "eu");
    fleet.commit(service, stays("three"));
    equal(await ended(release()), "FAILED");
    equal(running().size === 1 && running().has(good), true);
    fleet.millrace("deploy", "resume", "web", "--region", "eu");
    equal(await ended(release()), "SUCCEEDED");
    await until("all machines run the new version", () => running().size === 1 && !running().has(good), limits);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
