/** A stock serf agent among our nodes: each sees the other join, change its tags, leave and fail. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { systemClock } from "#door/system-clock.ts";
import { addressText } from "#mesh/address.ts";
import { Mesh, type MeshOptions } from "#mesh/mesh.ts";
import { profiles } from "#mesh/machine/profile.ts";
import { until } from "#testing/until.ts";
import { SerfAgent, serfMissing } from "./serf-agent.ts";

const patience = { limitMs: 60_000, everyMs: 100 };

const openMesh = (name: string, more: Partial<MeshOptions> = {}): Promise<Mesh> =>
  Mesh.open({
    name,
    listen: { host: "127.0.0.1", port: 0 },
    tags: () => ({ role: "millrace", load: "1/4" }),
    times: profiles.local,
    clock: systemClock,
    random: new Random(`${name} ${Date.now()}`),
    randomBytes: (count) => new Uint8Array(randomBytes(count)),
    log: () => {},
    ...more,
  });

const stateAt = (mesh: Mesh, name: string): string | undefined =>
  mesh.members().find((member) => member.name === name)?.state;

/** Both know each other, with tags. */
async function meet(agent: SerfAgent, mesh: Mesh): Promise<void> {
  const name = mesh.status().name;
  await until(`${agent.name} sees ${name}`, async () => (await agent.status(name)) === "alive", patience);
  deepEqual((await agent.members()).get(name)?.tags, { role: "millrace", load: "1/4" });
  await until(`${name} sees ${agent.name}`, () => stateAt(mesh, agent.name) === "alive", patience);
  const seen = mesh.members().find((member) => member.name === agent.name);
  deepEqual({ ...seen?.tags }, { role: "lab" });
}

const needsSerf = { skip: serfMissing };
const key = Buffer.from(new Uint8Array(32).fill(65)).toString("base64");
const sealing = { args: [`-encrypt=${key}`], options: { keys: [Buffer.from(key, "base64")] } };
const ways = [
  { title: "in clear", args: ["-disable-compression"], options: { compresses: false } },
  { title: "compressed", args: [], options: { compresses: true } },
  { title: "it compresses, we do not", args: [], options: { compresses: false } },
  { title: "sealed", args: [...sealing.args, "-disable-compression"], options: sealing.options },
  { title: "sealed and compressed", ...sealing },
];

for (const { title, args, options } of ways)
  test(`${title}: it joins us, another of ours joins it, tags change, both leave`, needsSerf, async () => {
    await using one = await SerfAgent.start("one", ...args);
    await using mill = await openMesh("mill", options);
    await one.join(addressText(mill.address));
    await meet(one, mill);
    await using race = await openMesh("race", { ...options, seeds: [one.address] });
    await meet(one, race);
    await until("ours know each other", () => stateAt(mill, "race") === "alive", patience);

    mill.setTags({ role: "millrace", load: "4/4", state: "draining" });
    const tags = async () => (await one.members()).get("mill")?.tags["state"];
    await until("it sees our new tags", async () => (await tags()) === "draining", patience);
    await one.says("tags", "-set", "colour=blue");
    const colour = () => mill.members().find(({ name }) => name === "one")?.tags["colour"];
    await until("we see its new tags", () => colour() === "blue", patience);

    await race.leave();
    await until("it sees that ours left", async () => (await one.status("race")) === "left", patience);
    await one.says("leave");
    await until("we see that it left", () => stateAt(mill, "one") === "left", patience);
    equal(mill.status().counts.deaths, 0);
    deepEqual(one.complaints(), []);
  });

// Beside each other: most of it is waiting for suspicions to end.
describe("killed with -9: it sees ours fail, we see it fail", { ...needsSerf, concurrency: true }, () => {
  const plain = { title: "in clear", args: [], options: {} };
  for (const { title, args, options } of [plain, { title: "sealed", ...sealing }])
    test(`${title}, and the remaining one of ours leaves`, async () => {
      await using one = await SerfAgent.start("one", ...args);
      await using two = await SerfAgent.start("two", `-join=${one.address}`, ...args);
      await using mill = await openMesh("mill", { ...options, seeds: [two.address] });
      await using race = await openMesh("race", { ...options, seeds: [one.address] });
      equal((await one.info("serf"))["encrypted"], String(title === "sealed"));
      for (const mesh of [mill, race]) for (const agent of [one, two]) await meet(agent, mesh);
      await race.close(); // without a leave message
      await two.kill();
      await until("it sees ours as failed", async () => (await one.status("race")) === "failed", patience);
      await until("we see its fellow as failed", () => stateAt(mill, "two") === "dead", patience);
      equal(await one.status("mill"), "alive");
      equal(stateAt(mill, "one"), "alive");
      await mill.leave();
      await until("it sees that ours left", async () => (await one.status("mill")) === "left", patience);
    });
});

test("a failed member that comes back under its name is alive again, on both sides", needsSerf, async () => {
  await using one = await SerfAgent.start("one");
  const first = await openMesh("mill", { seeds: [one.address] });
  await meet(one, first);
  const { address } = first;
  await first.close();
  await until("it sees ours as failed", async () => (await one.status("mill")) === "failed", patience);
  await using again = await openMesh("mill", { listen: address, seeds: [one.address] });
  await meet(one, again);
});

test("its commands count us: reachability, queries, keys that are changed at run time", needsSerf, async () => {
  const fresh = Buffer.from(new Uint8Array(16).fill(66)).toString("base64");
  await using one = await SerfAgent.start("one", `-encrypt=${key}`);
  await using mill = await openMesh("mill", { keys: [Buffer.from(key, "base64")], seeds: [one.address] });
  await meet(one, mill);
  match(await one.says("reachability"), /Successfully contacted all live nodes/);
  match(await one.says("query", "-timeout=2s", "-node=mill", "hello"), /Ack from 'mill'/);
  await one.says("keys", `-install=${fresh}`);
  await one.says("keys", `-use=${fresh}`);
  await one.says("keys", `-remove=${key}`);
  match(await one.says("keys", "-list"), /\[2\/2\]/);
  equal(mill.keyring.keys.length, 1);
  await using stale = await openMesh("stale", { keys: [Buffer.from(key, "base64")] });
  await rejects(stale.join([one.address]), (error) => isFault(error, "unavailable"));
  await one.says("event", "deploy", "now");
  equal(await one.status("mill"), "alive");
  equal(stateAt(mill, "one"), "alive");
});

test("it drops our own messages silently, and its clocks do not change", needsSerf, async () => {
  await using one = await SerfAgent.start("one");
  await using mill = await openMesh("mill", { seeds: [one.address] });
  await meet(one, mill);
  await until("it has heard our intent to join", () => one.log.includes("messageJoinType: mill"), patience);
  const clocks = async () => {
    const { member_time, event_time, query_time } = await one.info("serf");
    return { member_time, event_time, query_time };
  };
  const seen = (): number => one.log.split("messageJoinType: one").length;
  const [before, seenBefore] = [await clocks(), seen()];
  for (let i = 0; i < 50; i += 1) await mill.send("one", new Uint8Array(200).fill(i));
  await mill.send("one", new Uint8Array(50_000));
  await until("it has read them all", () => seen() >= seenBefore + 51, patience);
  deepEqual(await clocks(), before);
  deepEqual(one.complaints(), []);
  ok(!/unknown type/.test(one.log));
  equal(await one.status("mill"), "alive");
});
