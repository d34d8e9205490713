/** Members on real sockets of this machine. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { performance } from "node:perf_hooks";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { until } from "#testing/until.ts";
import { addressText } from "./address.ts";
import { goldenNames, goldenPacket } from "./testing/golden-packets.ts";
import { Mesh, type MeshOptions } from "./mesh.ts";
import { profiles } from "./machine/profile.ts";
import { realClock } from "#testing/real-clock.ts";

const quick = {
  ...profiles.local,
  probeIntervalMs: 200,
  probeTimeoutMs: 80,
  gossipIntervalMs: 20,
  pushPullIntervalMs: 2_000,
  reconnectIntervalMs: 500,
  metaIntervalMs: 50,
  leavePropagateMs: 100,
};
const patience = { limitMs: 60_000, everyMs: 10 };

const logged: string[] = [];

const open = (name: string, more: Partial<MeshOptions> = {}): Promise<Mesh> =>
  Mesh.open({
    name,
    listen: { host: "127.0.0.1", port: 0 },
    tags: () => ({ role: "test" }),
    times: quick,
    clock: realClock,
    random: new Random(`${name} ${process.pid} ${performance.now()}`),
    randomBytes: (count) => new Uint8Array(randomBytes(count)),
    log: (line) => void logged.push(line),
    ...more,
  });

const stateAt = (mesh: Mesh, name: string): string | undefined =>
  mesh.members().find((member) => member.name === name)?.state;

const seesAll = (meshes: readonly Mesh[]) => (): boolean =>
  meshes.every((mesh) => mesh.members().filter(({ state }) => state === "alive").length === meshes.length);

describe("a mesh on real sockets", () => {
  test("members join, announce their tags, hear each other, leave, and fail", async () => {
    await using a = await open("a");
    await using b = await open("b", { seeds: [addressText(a.address)] });
    await using c = await open("c");
    const events: string[] = [];
    a.listen((event) => void events.push("member" in event ? `${event.kind} ${event.member.name}` : event.kind));
    equal(await c.join([addressText(b.address)]), 1);
    await until("all members see each other", seesAll([a, b, c]), patience);

    c.setTags({ role: "test", load: "7/8" });
    const tagAt = (mesh: Mesh): string | undefined => mesh.members().find(({ name }) => name === "c")?.tags["load"];
    await until("c's load is known", () => tagAt(a) === "7/8" && tagAt(b) === "7/8", patience);

    const heard: string[] = [];
    b.listen((event) => void (event.kind === "user" && heard.push(`${event.from} ${event.bytes.length}`)));
    await a.send("b", new Uint8Array(10));
    await a.send("b", new Uint8Array(100_000));
    await a.send("b", new Uint8Array(3), { sure: true });
    await until("b heard all three", () => heard.length === 3, patience);
    deepEqual(heard.toSorted(), ["a 10", "a 100000", "a 3"]);
    await rejects(a.send("nobody", new Uint8Array(1)), (error) => isFault(error, "not-found"));

    await c.leave();
    await until("c is left", () => stateAt(a, "c") === "left" && stateAt(b, "c") === "left", patience);
    await b.close();
    await until("b has failed", () => stateAt(a, "b") === "dead", patience);
    ok(events.includes("join c") && events.includes("update c") && events.includes("leave c"), events.join());
    ok(events.includes("fail b"), events.join());
  });

  test("sealed and labelled; members with another key or label stay out; keys are rotated at run time", async () => {
    const [old, fresh] = [new Uint8Array(16).fill(1), new Uint8Array(32).fill(2)];
    await using a = await open("a", { keys: [old], label: "blue" });
    await using b = await open("b", { keys: [old], label: "blue", seeds: [addressText(a.address)] });
    await until("a and b see each other", seesAll([a, b]), patience);
    const strangers = [
      { keys: [fresh], label: "blue" },
      { label: "blue" },
      { keys: [old], label: "red" },
      { keys: [old] },
    ];
    for (const how of strangers) {
      await using stranger = await open("stranger", how);
      await rejects(stranger.join([addressText(a.address)]), (error) => isFault(error, "unavailable"));
      equal(stateAt(a, "stranger"), undefined);
    }
    for (const mesh of [a, b]) mesh.keyring.install(fresh);
    for (const mesh of [a, b]) mesh.keyring.use(fresh);
    for (const mesh of [a, b]) mesh.keyring.remove(old);
    await using late = await open("late", { keys: [fresh], label: "blue", seeds: [addressText(b.address)] });
    await until("another member joins with the new key", seesAll([a, b, late]), patience);
    equal(a.status().counts.deaths + b.status().counts.deaths, 0);
  });

  test("IPv6", async () => {
    const listen = { host: "::1", port: 0 };
    await using a = await open("a", { listen });
    await using b = await open("b", { listen });
    await b.join([addressText(a.address)]);
    await until("both see both", seesAll([a, b]), patience);
  });

  test("without other members: it reports what was tried, and tries again by itself", async () => {
    await using a = await open("a");
    await rejects(a.join(["127.0.0.1:1"]), /127\.0\.0\.1:1/);
    await rejects(a.join(["no such host:70"]), (error) => isFault(error, "unavailable"));
    const seedPort = await freePort();
    await using late = await open("late", { seeds: [`127.0.0.1:${seedPort}`] });
    await using seed = await open("seed", { listen: { host: "127.0.0.1", port: seedPort } });
    await until("the seed came later", seesAll([late, seed]), patience);
  });

  test("noise, incomplete messages and too many streams: it continues", async () => {
    await using a = await open("a", { rimLimits: { streamsInFromOneHostMax: 4 } });
    const { host, port } = a.address;
    const random = new Random("noise");
    const udp = createSocket("udp4");
    for (let i = 0; i < 500; i += 1) {
      const real = goldenPacket(random.pick(goldenNames));
      udp.send(
        real.map((byte) => (random.chance(0.05) ? random.below(256) : byte)),
        port,
        host,
      );
    }
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect({ host, port });
      socket.on("error", () => {});
      socket.write(goldenPacket("push-pull-stream").subarray(0, 40));
      return socket;
    });
    await until("it refused some", () => a.status().streamsDropped > 0, patience);
    await until("it has seen the noise", () => a.status().counts.messagesRefused > 0, patience);
    udp.close();
    await using b = await open("b");
    equal(await b.join([addressText(a.address)]), 1, "incomplete messages leave space for a complete one");
    for (const socket of sockets) socket.destroy();
    await until("it still lives", () => stateAt(b, "a") === "alive" && stateAt(a, "b") === "alive", patience);
    deepEqual(
      logged.filter((line) => /Assertion|TypeError|RangeError/.test(line)),
      [],
    );
  });

  test("a stream that holds many bytes is closed for those that hold few", async () => {
    const keys = [new Uint8Array(randomBytes(32))];
    await using a = await open("a", { keys, rimLimits: { streamBytesHeldMax: 100_000 } });
    const { host, port } = a.address;
    const sealed = Buffer.alloc(99_990);
    sealed.writeUInt8(10); // a sealed message
    sealed.writeUInt32BE(1_000_000, 1);
    const socket = connect({ host, port });
    socket.on("error", () => {});
    await new Promise<void>((sent) => socket.write(sealed, () => sent()));
    await using b = await open("b", { keys });
    equal(await b.join([addressText(a.address)]), 1);
    await until("the large one is closed", () => a.status().streamsDropped === 1, patience);
    socket.destroy();
  });

  test("packets beyond the limit are dropped", async () => {
    await using a = await open("a", { rimLimits: { packetsPerSecondMax: 10 } });
    const udp = createSocket("udp4");
    for (let i = 0; i < 300; i += 1) udp.send(goldenPacket("ping"), a.address.port, a.address.host);
    await until("some are dropped", () => a.status().packetsDropped > 0, patience);
    udp.close();
  });

  test("a port that is taken is a Fault that names it", async () => {
    await using a = await open("a");
    await rejects(open("b", { listen: a.address }), (error) => {
      match(String(error), /listen for the mesh/);
      return isFault(error, "exhausted");
    });
  });
});

async function freePort(): Promise<number> {
  const mesh = await open("port");
  await mesh.close();
  return mesh.address.port;
}
