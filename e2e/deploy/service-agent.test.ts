/** One service on one machine, with real files and real processes; only the node is a table of bytes. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { Fault } from "#base/fault.ts";
import { systemClock } from "#door/system-clock.ts";
import { ServiceAgent, type ServicePorts, type ServiceStatus } from "#doors/deploy/agent/service-agent.ts";
import { nextGoal, type GoalChange, type SignedGoal } from "#doors/deploy/goal/goal.ts";
import { manifestText, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { createKey, KeyRing, signerOf, type Signed } from "#doors/deploy/signing/signing.ts";
import { until } from "#testing/until.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const root = mkdtempSync(join(tmpdir(), "millrace-agent-"));
const key = createKey();
const signer = signerOf(key.privatePem);
const ring = new KeyRing([key.publicPem]);
const nameOf = (bytes: Uint8Array): string => `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;

const pids = new Set<number>();
afterEach(() => {
  for (const pid of pids) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  pids.clear();
});
after(() => rmSync(root, { recursive: true, force: true }));

/** A version that stays for as long as it is left alone, or runs what is given. */
function versionOf(text: string, command = ["sleep", "1000"], by = signer) {
  const bytes = Buffer.from(text);
  const manifest: Manifest = {
    format: 1,
    service: "web",
    sha: "0123456789",
    builder: "j1-1",
    run: {
      command,
      env: {},
      probe: { kind: "exec", command: ["true"] },
      withinMs: 60_000,
      everyMs: 20,
      drainMs: 100,
      keepVersions: 3,
      diskBytesMax: 2 ** 30,
    },
    files: [{ path: "file", executable: false, sizeBytes: bytes.length, segments: [nameOf(bytes)] }],
    links: [],
  };
  const signed = by.sign("manifest", manifestText(manifest));
  return { digest: nameOf(Buffer.from(JSON.stringify(signed))), signed, segment: nameOf(bytes), bytes };
}

type Version = ReturnType<typeof versionOf>;

async function machineOf(name: string, versions: readonly Version[], more: Partial<ServicePorts> = {}) {
  const folder = join(root, name);
  const said: ServiceStatus[] = [];
  const asked: string[] = [];
  let last: SignedGoal | undefined;
  const open = async () =>
    await ServiceAgent.open({
      machine: "m1",
      labels: [],
      service: "web",
      region: "eu",
      folder,
      ring,
      clock: systemClock,
      manifest: (digest) => {
        const found = versions.find((one) => one.digest === digest);
        return found ? Promise.resolve(found.signed) : Promise.reject(new Fault("not-found", "read blob", { digest }));
      },
      async *segment(digest) {
        asked.push(digest);
        yield versions.find(({ segment }) => segment === digest)?.bytes ?? Buffer.of();
      },
      log: () => undefined,
      changed: (status) => void said.push(status),
      ...more,
    });
  const goal = (manifest: string | null, change: Partial<GoalChange> = {}): Signed => {
    const full = { kind: "release", halted: false, release: "j1-1", stable: null } as const;
    const rest = { labels: [], named: [], sharePpm: 1_000_000, wave: 0, evidence: null };
    last = nextGoal({ service: "web", region: "eu" }, last, { ...full, ...rest, manifest, ...change }, signer);
    return last.signed;
  };
  const pid = (): number => (JSON.parse(readFileSync(join(folder, "process.json"), "utf8")) as { pid: number }).pid;
  const settled = async (agent: ServiceAgent): Promise<ServiceStatus> => {
    for (let steps = 0; steps < 20; steps += 1) {
      const didSomething = await agent.step();
      if (existsSync(join(folder, "process.json"))) pids.add(pid());
      if (!didSomething) break;
    }
    return agent.status;
  };
  return { folder, said, asked, open, goal, settled, pid };
}

describe("a service on a machine", { skip }, () => {
  const [one, two] = [versionOf("one"), versionOf("two")];

  test("DEPLOY-5, DEPLOY-25: follows versions upwards only, also after a restart, and may skip some", async () => {
    const machine = await machineOf("order", [one, two]);
    const [first, , third] = [machine.goal(one.digest), machine.goal(two.digest), machine.goal(two.digest)];
    const agent = await machine.open();
    equal(await agent.take(first), undefined);
    equal((await machine.settled(agent)).running, one.digest);
    equal(await agent.take(third), undefined);
    const again = await machine.open();
    match((await again.take(first)) ?? "", /not newer/);
    equal((await machine.settled(again)).running, two.digest);
  });

  test("DEPLOY-4: a rollback to a version that no trusted key signed is not activated", async () => {
    const stranger = versionOf("stranger", ["sleep", "1000"], signerOf(createKey().privatePem));
    const machine = await machineOf("stranger", [one, stranger]);
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    await agent.take(machine.goal(stranger.digest, { kind: "rollback" }));
    const status = await machine.settled(agent);
    equal(status.running, one.digest);
    equal(status.state, "failed");
    match(status.why, /not trusted/);
  });

  test("DEPLOY-14: a node without the bytes is asked less and less often, and what runs goes on", async () => {
    let nowMs = 1_000_000;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    const machine = await machineOf("storm", [one], { clock });
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    let tries = 0;
    const missing = await machineOf("storm", [one], {
      clock,
      manifest: () => Promise.reject(new Fault("unavailable", "reach node", { tries: (tries += 1) })),
    });
    const again = await missing.open();
    machine.goal(one.digest);
    await again.take(machine.goal(two.digest));
    for (let ticks = 0; ticks < 240; ticks += 1, nowMs += 500) await again.step();
    ok(tries >= 5 && tries <= 10, `${tries} in two minutes`);
    equal(again.status.running, one.digest);
    equal(again.status.state, "staging", "trouble on the way is no failure of the version");
  });

  test("DEPLOY-18, DEPLOY-19: goes back by itself, and a version that is good again needs no byte", async () => {
    const bad = versionOf("bad", ["false"]);
    const machine = await machineOf("back", [one, two, bad]);
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    await agent.take(machine.goal(bad.digest, { release: "j2-1" }));
    const reverted = await machine.settled(agent);
    equal(reverted.state, "reverted");
    equal(reverted.running, one.digest);
    await agent.take(machine.goal(two.digest, { release: "j3-1" }));
    equal((await machine.settled(agent)).running, two.digest, "forward from there");
    const before = machine.asked.length;
    await agent.take(machine.goal(one.digest, { release: "j4-1", kind: "rollback" }));
    equal((await machine.settled(agent)).running, one.digest);
    equal(machine.asked.length, before);
  });

  test("DEPLOY-21: a version that failed here stays away after a restart, too", async () => {
    const bad = versionOf("bad again", ["false"]);
    const machine = await machineOf("stays-away", [one, bad]);
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    await agent.take(machine.goal(bad.digest, { release: "j2-1" }));
    await machine.settled(agent);
    const again = await machine.open();
    equal((await machine.settled(again)).running, one.digest);
    equal(machine.said.filter(({ state }) => state === "activating").length, 2, "once each");
  });

  test("DEPLOY-23: a halt stops what is being fetched and given to others; its end lets it go on", async () => {
    const gate = Promise.withResolvers<void>();
    const withdrawn: string[] = [];
    const kept: string[] = [];
    const swarm = {
      fill: () => Promise.resolve(),
      keep: (content: string) => void kept.push(content),
      withdraw: (content: string) => void withdrawn.push(content),
    };
    let isSlow = true;
    const machine = await machineOf("halt", [one, two], {
      swarm,
      async *segment(digest) {
        const { bytes } = digest === one.segment ? one : two;
        yield bytes.subarray(0, 1);
        if (isSlow && digest === two.segment) await gate.promise;
        yield bytes.subarray(1);
      },
    });
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    deepEqual(kept, [one.digest]);
    await agent.take(machine.goal(two.digest, { release: "j2-1" }));
    const stepping = agent.step();
    await until("it fetches", () => agent.status.state === "staging");
    await agent.take(machine.goal(two.digest, { release: "j2-1", halted: true }));
    gate.resolve();
    equal(await stepping, false);
    ok(withdrawn.includes(one.digest) && withdrawn.includes(two.digest));
    equal(readdirSync(join(machine.folder, "versions")).filter((name) => name.endsWith(".staging")).length, 1);
    equal(await agent.step(), false, "halted");
    const again = await machine.open();
    equal(await again.step(), false, "sticky");
    isSlow = false;
    await again.take(machine.goal(two.digest, { release: "j2-1" }));
    equal((await machine.settled(again)).running, two.digest);
    deepEqual(kept.slice(1), [one.digest, two.digest], "what is here is given to others again");
  });

  test("DEPLOY-7: what is being fetched is left when a newer goal wants something else", async () => {
    const gate = Promise.withResolvers<void>();
    const machine = await machineOf("newer", [one, two], {
      async *segment(digest) {
        if (digest === one.segment) await gate.promise;
        yield digest === one.segment ? one.bytes : two.bytes;
      },
    });
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    const stepping = agent.step();
    await until("it fetches", () => agent.status.state === "staging");
    await agent.take(machine.goal(two.digest, { release: "j2-1" }));
    gate.resolve();
    equal(await stepping, false);
    equal((await machine.settled(agent)).running, two.digest);
    equal(
      readdirSync(join(machine.folder, "versions")).some((name) => name.endsWith(".staging")),
      false,
    );
  });

  test("DEPLOY-38: leftovers of any step do not stand in the way", async () => {
    const machine = await machineOf("leftovers", [one]);
    const agent = await machine.open();
    writeFileSync(join(machine.folder, "current.new"), "a leftover");
    writeFileSync(join(machine.folder, "goal.json.new"), "{");
    writeFileSync(join(machine.folder, "memory.json.new"), "{");
    await agent.take(machine.goal(one.digest));
    equal((await machine.settled(agent)).running, one.digest);
  });

  test("DEPLOY-27, DEPLOY-36: the service outlives its agent, and another agent finds it", async () => {
    const machine = await machineOf("outlives", [one]);
    const agent = await machine.open();
    await agent.take(machine.goal(one.digest));
    await machine.settled(agent);
    const before = machine.pid();
    const again = await machine.open();
    equal((await machine.settled(again)).running, one.digest);
    equal(machine.pid(), before);
  });
});
