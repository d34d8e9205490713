/** One region after the other, few machines at once, a service after another, and machines that are pinned. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = { m1: "eu", m2: "eu", m3: "us" } as const;
const service = `
service: web
build: { run: "mkdir out && cp server.mjs out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 100ms
targets: { labels: [role=web], regions: [eu, us] }
waves: [ { share: "100%", regions: [eu] }, { share: "100%", regions: [us], approve: 1 } ]
atOnce: { service: "50%" }
`;
const stays = (text: string): string => `setInterval(() => {}, 1000); console.log(${JSON.stringify(text)});\n`;
const limits = { limitMs: 120_000, everyMs: 200 };

describe("a release to two regions", { skip, timeout: 240_000 }, () => {
  let fleet: DeployFleet;
  before(async () => {
    fleet = await DeployFleet.open([]);
    for (const [machine, region] of Object.entries(machines)) fleet.startAgent(machine, 0, region);
    await until("all machines are attached", () => fleet.machines().length === 3, limits);
  });
  after(async () => await fleet[Symbol.asyncDispose]());

  const file = () => join(fleet.repository, "service.yaml");
  const release = (...more: readonly string[]): string => fleet.millrace("deploy", "release", file(), ...more)[0] ?? "";
  const succeeded = async (job: string): Promise<void> =>
    await until(`${job} succeeded`, async () => (await fleet.phase(job)) === "SUCCEEDED", limits);
  const running = (machine: string): string | null =>
    fleet.machines().find((one) => one.machine === machine)?.reports[0]?.running ?? null;
  const why = (...of: readonly string[]): string => fleet.millrace("deploy", "why", ...of).join("\n");
  let job = "";

  test("is replicated, moves one machine of a region at once, and the second region waits for a person", async () => {
    fleet.commit(service, stays("one"));
    job = release();
    await until("the second region waits", () => why(job).includes("it takes 1 approvals"), limits);
    ok(running("m1") !== null && running("m1") === running("m2"), "the first region has it");
    equal(running("m3"), null);
    const shown = await fleet.shown(job);
    match(shown.stages.find(({ name }) => name === "replicate")?.why ?? "", /[1-9]\d* bytes verified/);
    const [eu] = shown.regions;
    equal(eu?.version, 2, "50% of two machines at once are two goals");
    fleet.millrace("deploy", "approve", job, "--wave", "2");
    await succeeded(job);
    equal(running("m3"), running("m1"));
    const services = fleet
      .millrace("deploy", "status", "--json")
      .map((line) => JSON.parse(line) as { service: string });
    deepEqual(
      services.map((one) => one.service),
      ["web"],
    );
  });

  test("passes by a pinned machine, which is shown as drift and follows when its pin ends", async () => {
    const before = running("m1");
    fleet.millrace("deploy", "pin", "web", "--region", "eu", "--machine", "m1", "--for", "1h", "--why", "a test");
    fleet.millrace("deploy", "pin", "web", "--region", "us", "--label", "role=web", "--for", "8s");
    fleet.commit(service.replace(", approve: 1", ""), stays("two"));
    const next = release();
    await until("m2 has it", () => running("m2") !== before, limits);
    equal(running("m1"), before);
    match(fleet.said("deploy", "drift", "web", "--region", "eu"), /m1.*pinned by .* a test/);
    match(why(next, "m1"), /pinned by/);
    // The pin of the label ends by itself; until then the wave of its region has no machine.
    await succeeded(next);
    equal(running("m3"), running("m2"));
    fleet.millrace("deploy", "unpin", "web", "--region", "eu", "--machine", "m1");
    await until("m1 follows", () => running("m1") === running("m2"), limits);
  });

  test("waits for its time, and for a service that comes first", async () => {
    const text = readFileSync(file(), "utf8").replace(/^waves.*$/m, "");
    writeFileSync(file(), text.replace("service: web", "service: api").replace("atOnce", "notBefore: [web]\natOnce"));
    const at = new Date(Date.now() + 6_000).toISOString();
    const api = release("--not-before", at);
    await until("it says so", () => why(api).includes(`not before ${at}`), limits);
    await succeeded(api);
    ok(Date.now() >= Date.parse(at), "it did not begin before");
    writeFileSync(file(), text.replace("atOnce", "notBefore: [api]\natOnce"));
    let refused = "";
    try {
      release();
    } catch (error) {
      refused = String((error as { stderr?: string }).stderr ?? error);
    }
    match(refused, /services wait for each other/);
  });
});
