/** A second release of a program that was linked again: real agents fetch the difference and end with right bytes. */
import { equal, ok } from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const machines = ["m1", "m2", "m3", "m4"];
const late = "m5";
const sizeBytes = 16 * 1024 * 1024;
const service = `
service: web
build: { run: "mkdir out && cp server.mjs program.bin out/", output: out }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 1s
targets: { labels: [role=web], regions: [eu] }
`;
const limits = { limitMs: 120_000, everyMs: 200 };
const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** What is inserted moves all that follows, and addresses everywhere change a little. */
function linkedAgain(program: Buffer): Buffer {
  const at = 5 * 1024 * 1024 + 77;
  const bytes = Buffer.concat([program.subarray(0, at), randomBytes(2_000), program.subarray(at)]);
  for (let i = 100; i < bytes.length; i += 4_001) bytes[i] = ((bytes[i] ?? 0) + 3) & 255;
  return bytes;
}

describe("a release that differs little from the one before", { skip, timeout: 240_000 }, () => {
  let fleet: DeployFleet;
  before(async () => {
    fleet = await DeployFleet.open(machines);
    await until("all machines are attached", () => fleet.machines().length === machines.length, limits);
  });
  after(async () => await fleet[Symbol.asyncDispose]());

  const versions = (machine: string): readonly string[] => {
    const folder = join(fleet.folder, machine, "services", "web", "versions");
    if (!existsSync(folder)) return [];
    const done = readdirSync(folder).filter((name) => /^sha256-[0-9a-f]+$/.test(name));
    return done.map((name) => join(folder, name)).toSorted((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs);
  };
  const originBytes = async (): Promise<number> => {
    const response = await fetch(`http://${fleet.node.address}/metrics`, { headers: fleet.node.headers });
    return Number(/^millrace_deploy_origin_bytes_total (\d+)/m.exec(await response.text())?.[1] ?? 0);
  };
  const release = async (program: Buffer): Promise<number> => {
    const before = await originBytes();
    writeFileSync(join(fleet.repository, "program.bin"), program);
    fleet.commit(service, "setInterval(() => {}, 1000);\n");
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    await until("the release has ended", async () => (await fleet.phase(job)) === "SUCCEEDED", limits);
    return (await originBytes()) - before;
  };
  const checkAll = (names: readonly string[], program: Buffer): void => {
    for (const machine of names) {
      const path = join(versions(machine).at(-1) ?? "", "program.bin");
      equal(hashOf(readFileSync(path)), hashOf(program), `${machine} has wrong bytes`);
    }
  };

  test("moves a small part of the bytes, and a machine without the older one gets all of them", async () => {
    const first = randomBytes(sizeBytes);
    const whole = await release(first);
    checkAll(machines, first);
    const second = linkedAgain(first);
    const part = await release(second);
    checkAll(machines, second);
    ok(whole >= sizeBytes, `the node sent ${whole} bytes of the first release`);
    ok(part < sizeBytes / 4, `the node sent ${part} bytes of the second release`);
    for (const machine of machines) {
      const log = readFileSync(join(fleet.folder, `${machine}.log`), "utf8");
      ok(/\d+ bytes were fetched instead of \d+/.test(log), `${machine} fetched the whole release`);
    }
    fleet.startAgent(late);
    await until("a new machine has the release", () => versions(late).length > 0, limits);
    checkAll([late], second);
    process.stdout.write(`node sent ${whole} bytes for the first release, ${part} for the second\n`);
  });
});
