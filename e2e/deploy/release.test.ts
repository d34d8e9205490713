/** From a commit to machines and back, with a real node, real agents and real services. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = ["m1", "m2", "m3"];
const service = `
service: web
build: { run: "echo compiling; mkdir out && cp server.mjs out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 1s
targets: { labels: [role=web], regions: [eu] }
waves: [ { share: "34%", bake: 500ms }, { share: "100%" } ]
`;
const stays = (text: string): string => `setInterval(() => {}, 1000); console.log(${JSON.stringify(text)});\n`;
const limits = { limitMs: 120_000, everyMs: 200 };

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
    const jobs = fleet
      .millrace("job", "list", "--json")
      .map((line) => JSON.parse(line) as { job: string; name: string });
    const build = jobs.find(({ name }) => name.startsWith("build "))?.job ?? "";
    match(fleet.millrace("job", "logs", build).join("\n"), /compiling/);
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

  test("and a blob that is not there is a 404, not an answer without bytes", async () => {
    const missing = `${"0".repeat(64)}/1`;
    const url = `http://${fleet.node.address}/v1/deploy/blobs/${missing}`;
    equal((await fetch(url, { headers: fleet.node.headers })).status, 404);
  });

  test("and no other machine can speak for one of them", async () => {
    const url = `http://${fleet.node.address}/v1/deploy/machines/m1/reports?region=eu`;
    const headers = { ...fleet.node.headers, "content-type": "application/json", "millrace-machine-key": "another" };
    const lie = { service: "web", goalVersion: 1, state: "healthy", running: null, why: "a lie" };
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(lie) });
    equal(response.status, 403);
    match(await response.text(), /belongs to another machine's key/);
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

  test("that waits for approval is listed, planned and paused, and an abort takes it back", async () => {
    const [before = null] = running();
    const careful = service.replace('{ share: "100%" }', '{ share: "100%", approve: 1 }');
    const sha = fleet.commit(careful, stays("four"));
    const plan = JSON.parse(
      fleet.millrace("deploy", "plan", join(fleet.repository, "service.yaml"), "--json")[0] ?? "{}",
    ) as { waves: { machines: number; approvals: number }[] };
    equal(plan.waves.at(-1)?.machines, machines.length);
    equal(plan.waves.at(-1)?.approvals, 1);
    const job = release();
    await until("the first machine runs it", () => running().size === 2, limits);
    const listed = fleet.millrace("deploy", "jobs", "--json").map((line) => JSON.parse(line) as Listed);
    const row = listed.find(({ id }) => id === job);
    equal(row?.commit_sha, sha);
    equal(row?.status, "running");
    equal(row?.live, true);
    // Operators ask the database itself.
    const db = new DatabaseSync(join(fleet.node.folder, "journal", "history.db"), { readOnly: true });
    const inSql = db.prepare("select commit_sha, name, status, live from jobs_view where id = ?").get(job);
    deepEqual({ ...inSql }, { commit_sha: sha, name: row?.name, status: "running", live: 1 });
    db.close();
    fleet.millrace("deploy", "pause", job);
    const why = (...of: readonly string[]): string => fleet.millrace("deploy", "why", job, ...of).join("\n");
    await until("it waits for approval", () => why().includes("it takes 1 approvals, none yet"), limits);
    match(why(), /paused by/);
    match(why("wave-1"), /wave 1 \(34%\) passed: 1 of 1 healthy/);
    match(machines.map((machine) => why(machine)).join("\n"), /its turn comes with wave 2/);
    match(fleet.millrace("why", job).join("\n"), /it takes 1 approvals/);
    fleet.millrace("deploy", "pause", job, "--off");
    fleet.millrace("deploy", "abort", job);
    equal(await ended(job), "CANCELLED");
    match(fleet.said("deploy", "watch", job), /wave-1 completed: 1 of 1 healthy.*cancelled: aborted by/s);
    await until("all machines run what they ran before", () => running().size === 1 && running().has(before), limits);
    equal(fleet.millrace("deploy", "drift", "web", "--region", "eu").length, 0, "no machine runs anything else");
  });

  test("of a commit that was built before does not build it again, and two at once share one build", async () => {
    const builds = (): number =>
      fleet.millrace("deploy", "jobs", "--json").filter((line) => line.includes('"name":"build ')).length;
    const before = builds();
    fleet.commit(service.replace("mkdir out", "sleep 2; mkdir out"), stays("shared"));
    const first = release();
    const other = join(fleet.repository, "other.yaml");
    const text = readFileSync(join(fleet.repository, "service.yaml"), "utf8");
    writeFileSync(other, text.replace("service: web", "service: api"));
    const [second = ""] = fleet.millrace("deploy", "release", other);
    deepEqual(await Promise.all([ended(first), ended(second)]), ["SUCCEEDED", "SUCCEEDED"]);
    equal(builds(), before + 1);
    equal(await ended(release()), "SUCCEEDED");
    equal(builds(), before + 1);
  });
});

type Listed = {
  readonly id: string;
  readonly name: string;
  readonly commit_sha: string;
  readonly status: string;
  readonly live: boolean;
};

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
