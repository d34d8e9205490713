/** A release spreads among real agents; one of them lies, others are killed, and the node sends little of it itself. */
import { equal, ok } from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];
const liar = "m3";
/** Sends one unit in a hundred wrong, and does not know it. */
const broken = "m5";
const sizeBytes = 24 * 1024 * 1024;
const service = `
service: web
build: { run: "mkdir out && cp server.mjs data.bin out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 1s
targets: { labels: [role=web], regions: [eu] }
`;
const limits = { limitMs: 180_000, everyMs: 200 };
const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe("a release that spreads among eight machines", { skip, timeout: 560_000 }, () => {
  let fleet: DeployFleet;
  before(async () => {
    fleet = await DeployFleet.open([]);
    for (const machine of machines) {
      fleet.startAgent(machine, machine === liar ? 1 : machine === broken ? 0.01 : 0);
    }
    await until("all machines are attached", () => fleet.machines().length === machines.length, limits);
  });
  after(async () => await fleet[Symbol.asyncDispose]());

  const versions = (machine: string): string => join(fleet.folder, machine, "services", "web", "versions");
  const staging = (machine: string): string | undefined =>
    existsSync(versions(machine))
      ? readdirSync(versions(machine)).find((name) => name.endsWith(".staging"))
      : undefined;
  const staged = (machine: string): string | undefined =>
    existsSync(versions(machine))
      ? readdirSync(versions(machine)).find((name) => /^sha256-[0-9a-f]+$/.test(name))
      : undefined;
  const metric = async (name: string): Promise<number> => {
    const response = await fetch(`http://${fleet.node.address}/metrics`, { headers: fleet.node.headers });
    return Number(new RegExp(`^${name} (\\d+)`, "m").exec(await response.text())?.[1] ?? 0);
  };

  test("is right in every byte despite a liar, wrong bytes and kill -9, and comes from peers, too", async () => {
    const data = randomBytes(sizeBytes);
    writeFileSync(join(fleet.repository, "data.bin"), data);
    fleet.commit(service, "setInterval(() => {}, 1000);\n");
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    await until("staging has begun", () => machines.some((machine) => staging(machine) !== undefined), {
      ...limits,
      everyMs: 10,
    });
    for (const machine of ["m7", "m8"]) {
      await fleet.killAgent(machine);
      fleet.startAgent(machine);
    }
    await until("all machines have it", () => machines.every((machine) => staged(machine) !== undefined), limits);
    for (const machine of machines) {
      const path = join(versions(machine), staged(machine) ?? "", "data.bin");
      equal(hashOf(readFileSync(path)), hashOf(data), `${machine} has wrong bytes`);
    }
    await until("the release has ended", async () => (await fleet.phase(job)) === "SUCCEEDED", limits);
    const fromNode = await metric("millrace_deploy_origin_bytes_total");
    ok(fromNode >= sizeBytes, `the node sent ${fromNode} bytes`);
    // How much less depends on who is early: src/swarm and src/sim/swarm bound that, where time is simulated.
    ok(fromNode < machines.length * sizeBytes, `the node sent ${fromNode} bytes, as without peers`);
    const logs = machines.map((machine) => readFileSync(join(fleet.folder, `${machine}.log`), "utf8")).join("\n");
    ok(logs.includes(`${liar} sent wrong bytes`), "the liar was found out");
    process.stdout.write(`node sent ${(fromNode / sizeBytes).toFixed(2)} copies for ${machines.length} machines\n`);
  });
});
