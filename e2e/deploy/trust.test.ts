/** What machines believe without a node: halts from other machines, and keys that were revoked. */
import { equal, match, ok } from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { CutLine } from "./cut-line.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = ["m1", "m2", "m3"];
const service = `
service: web
build: { run: "mkdir out && cp server.mjs out/", output: out }
run:
  exec: [sleep, "1000"]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 100ms
targets: { labels: [role=web], regions: [eu] }
`;
const limits = { limitMs: 120_000, everyMs: 200 };

describe("machines without a node", { skip, timeout: 280_000 }, () => {
  let fleet: DeployFleet;
  let line: CutLine;
  before(async () => {
    fleet = await DeployFleet.open(["m1"]);
    line = await CutLine.to(fleet.node.address);
    for (const machine of ["m2", "m3"]) fleet.startAgentAt(machine, line.url);
    await until("all are attached, and have met", () => machines.every((one) => has(one, "neighbours.json")), limits);
  });
  after(async () => {
    await line[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  const has = (machine: string, file: string): boolean => existsSync(join(fleet.folder, machine, file));
  const read = (machine: string, file: string): unknown =>
    JSON.parse(readFileSync(join(fleet.folder, machine, file), "utf8"));
  const goalOf = (machine: string): { readonly halted: boolean; readonly version: number } =>
    JSON.parse((read(machine, "services/web/goal.json") as { body: string }).body) as never;
  const trustOf = (machine: string): { readonly version: number; readonly revoked: readonly string[] } =>
    (read(machine, "trust.json") as { trusted: never }).trusted;
  const release = async (text: string): Promise<string> => {
    fleet.commit(service, `// ${text}\n`);
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    return await ended(job);
  };
  const ended = async (job: string): Promise<string> => {
    let phase = "";
    await until(`${job} ended`, async () => /SUCC|FAIL|CANC/.test((phase = await fleet.phase(job))), limits);
    return phase;
  };
  const running = (): ReadonlySet<string | null | undefined> =>
    new Set(fleet.machines().map(({ reports }) => reports[0]?.running));

  test("DEPLOY-23: hear of a halt from each other, and keep to it after a start without any node", async () => {
    equal(await release("one"), "SUCCEEDED");
    line.cut();
    fleet.millrace("deploy", "halt", "web", "--region", "eu");
    const startedMs = performance.now();
    await until("all are halted", () => machines.every((machine) => goalOf(machine).halted), limits);
    console.log(`# halted from machine to machine within ${Math.round(performance.now() - startedMs)} ms`);
    await fleet.node.kill();
    await fleet.killAgent("m3");
    fleet.startAgentAt("m3", line.url);
    const pid = fleet.servicePid("m3");
    await until("the agent is back", () => /again in/.test(readFileSync(join(fleet.folder, "m3.log"), "utf8")), limits);
    ok(goalOf("m3").halted);
    equal(fleet.servicePid("m3"), pid, "DEPLOY-27: the service did not notice");
    line.mend();
    await fleet.node.start();
    fleet.millrace("deploy", "resume", "web", "--region", "eu");
    await until("it is over", () => machines.every((machine) => !goalOf(machine).halted), limits);
  });

  test("DEPLOY-4: follow a new key, refuse what a revoked one signed, and go on with what runs", async () => {
    equal(await release("before"), "SUCCEEDED");
    const [old = null] = running();
    const [before = ""] = fleet.millrace("deploy", "keys");
    fleet.millrace("deploy", "rotate-key");
    equal(await release("two"), "SUCCEEDED");
    const [present = null] = running();
    ok(present !== old);
    const keys = fleet.millrace("deploy", "keys", "--json").map((text) => JSON.parse(text) as Key);
    equal(keys.map(({ state }) => state).join(), "counts,signs", before);
    const revoked = keys[0]?.key ?? "";
    fleet.millrace("deploy", "revoke-key", revoked);
    const knows = (machine: string): boolean => trustOf(machine).revoked.includes(revoked);
    await until("all machines know", () => machines.every(knows), limits);
    const [job = ""] = fleet.millrace("deploy", "rollback", "web", "--region", "eu");
    const why = (): string => fleet.machines()[0]?.reports[0]?.why ?? "";
    await until("the version of the revoked key is refused", () => why().includes("key is revoked"), limits);
    equal([...running()].join(), present, "what runs goes on");
    fleet.millrace("deploy", "abort", job);
    equal(await release("three"), "SUCCEEDED");
    match(fleet.millrace("deploy", "keys").join("\n"), new RegExp(`${revoked}\\s+revoked`));
  });
});

type Key = { readonly key: string; readonly state: string };
