/** Machines in one process, with real sockets, TLS and files: what they give each other, and what they refuse. */
import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { hashUnits, layoutOf, readUnit } from "#doors/deploy/manifest/layout.ts";
import type { Manifest } from "#doors/deploy/manifest/manifest.ts";
import { until } from "#testing/until.ts";
import { AgentSwarm } from "./agent-swarm.ts";
import { noCaps, noFleetCaps } from "./caps.ts";
import { SwarmDesk } from "./swarm-desk.ts";
import { keyFor, peerTls, secretOf, ticketOf } from "./tickets.ts";
import { UnitFiles } from "./unit-files.ts";
import { Frames, messageFrame, unitHead } from "./wire.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-swarm-"));
after(() => rmSync(root, { recursive: true, force: true }));

const digestOf = (bytes: Uint8Array): string => `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
const data = randomBytes(3 * 1024 * 1024 + 17);
const small = Buffer.from("small");
const blobs = new Map([data, small].map((bytes) => [digestOf(bytes), bytes]));
const store = {
  async *read(digest: string, range: { readonly offset: number; readonly length?: number } = { offset: 0 }) {
    const bytes = blobs.get(digest) ?? Buffer.alloc(0);
    yield bytes.subarray(range.offset, range.offset + (range.length ?? bytes.length));
  },
};
const file = (path: string, bytes: Buffer) => ({
  path,
  executable: false,
  sizeBytes: bytes.length,
  segments: [digestOf(bytes)],
});
const files = [file("a/data", data), file("b", small), file("c", small)];
const units = await hashUnits({ files }, store);
const manifest = { files, units } as unknown as Manifest;
const layout = layoutOf(manifest, units);

describe("units", () => {
  test("cover all distinct bytes once, across files", async () => {
    const all: Buffer[] = [];
    for (let unit = 0; unit < layout.units; unit += 1) all.push(await readUnit(layout, unit, store));
    deepEqual(Buffer.concat(all), Buffer.concat([data, small]));
    equal(units.sha256.length, layout.units);
  });

  test("UF1, UF2: only right bytes are written, and what lies there is verified", async () => {
    const folder = join(root, "files");
    const there = new UnitFiles(folder, manifest, units);
    await there.prepare(manifest);
    equal(there.have.count, 0);
    const last = layout.units - 1;
    await rejects(there.write(last, randomBytes(layout.sizeOf(last))), /hash is wrong/);
    await there.write(last, await readUnit(layout, last, store));
    equal(readFileSync(join(folder, "b"), "utf8"), "small");
    equal(readFileSync(join(folder, "c"), "utf8"), "small", "a segment that is in two files is in both");
    const again = new UnitFiles(folder, manifest, units);
    await again.prepare(manifest);
    equal(again.have.count, 1);
  });
});

describe("tickets", () => {
  const secret = secretOf("a2V5", "t", "m2", 5);
  const ticket = ticketOf(secret, "m1", { peer: "m2", address: "127.0.0.1:1", distance: "rack" });
  test("TK1: the machine that answers finds the same key, and who asks", () => {
    const found = keyFor(ticket.identity, "m2", [secret]);
    equal(found?.from, "m1");
    equal(found?.key.toString("base64"), ticket.key);
  });
  const refused: readonly [string, string, string, number][] = [
    ["another machine's ticket", ticket.identity, "m3", 5],
    ["a ticket of another epoch", ticket.identity, "m2", 6],
    ["what is no ticket", "bm90aGluZw", "m2", 5],
  ];
  for (const [name, identity, me, epoch] of refused)
    test(`TK1: ${name} is refused`, () => equal(keyFor(identity, me, [secretOf("a2V5", "t", me, epoch)]), undefined));
});

describe("frames", () => {
  test("are found however the bytes are cut", () => {
    const sent = Buffer.concat([
      messageFrame({ kind: "query", id: 7 }),
      unitHead(1, 2, 5),
      Buffer.from("bytes"),
      messageFrame({ kind: "shorten", id: 1, to: 3 }),
    ]);
    for (const step of [1, 3, 1_000]) {
      const frames = new Frames();
      const found = [];
      for (let at = 0; at < sent.length; at += step) found.push(...frames.take(sent.subarray(at, at + step)));
      deepEqual(
        found.map(({ kind }) => kind),
        ["query", "unit", "shorten"],
      );
    }
  });
  for (const bytes of ["ffffffff01", "0000000109", "00000003017b7d7d", "00000002017b7d"])
    test(`${bytes} is refused`, () =>
      throws(() => [...new Frames().take(Buffer.from(bytes, "hex"))], /read from a peer/));
});

describe("a swarm of four machines", () => {
  test("fetches all, from each other for the most part, and drops the one that lies", async () => {
    let fromNode = 0;
    const desk = new SwarmDesk({
      clock,
      random: new Random(1),
      clusterKey: () => Promise.resolve("a2V5"),
      caps: () => Promise.resolve(noFleetCaps),
      regionOf: () => undefined,
      nodes: () => 1,
    });
    const lines: string[] = [];
    const heard = new Set<string>();
    const machine = (name: string, isLiar: boolean) =>
      AgentSwarm.open({
        machine: name,
        rack: "r",
        host: "127.0.0.1",
        port: 0,
        caps: noCaps,
        nowMs: () => clock.monotonicMs(),
        log: (line) => lines.push(line),
        ask: (question) => desk.answer("t", name, question),
        async *originUnits(_content, { stripe, from, to }) {
          for (let at = from; at < to; at += 1) {
            const unit = at * 16 + stripe;
            fromNode += 1;
            yield { unit, bytes: await readUnit(layout, unit, store) };
          }
        },
        goal: () => heard.add(name),
        ...(isLiar && { disturb: (bytes: Buffer) => Buffer.alloc(bytes.length) }),
      });
    const names = ["m1", "m2", "m3", "m4"];
    const swarms = await Promise.all(names.map((name) => machine(name, name === "m2")));
    await Promise.all(
      swarms.map(async (swarm, i) => {
        mkdirSync(join(root, names[i] ?? ""));
        await swarm.fill("content", manifest, join(root, names[i] ?? ""), { isRollback: false });
      }),
    );
    for (const name of names.filter((each) => each !== "m2"))
      ok(readFileSync(join(root, name, "a/data")).equals(data), `${name} has wrong bytes`);
    ok(lines.some((line) => line.startsWith("m2 sent wrong bytes")));
    ok(fromNode < 4 * layout.units, `${fromNode} units of ${4 * layout.units} came from the node`);
    const [first] = swarms;
    first?.spread({ purpose: "goal", body: "{}", key: "", signature: "" });
    await until("another machine hears of a goal, and no node is asked", () => heard.size > 0);
    for (const swarm of swarms) await swarm[Symbol.asyncDispose]();
  });

  test("DEPLOY-23: passes a halt on to all machines without a node, also from one that has just started", async () => {
    const desk = new SwarmDesk({
      clock,
      random: new Random(1),
      clusterKey: () => Promise.resolve("a2V5"),
      caps: () => Promise.resolve(noFleetCaps),
      regionOf: () => undefined,
      nodes: () => 1,
    });
    let isNodeThere = true;
    const halted = new Map<string, AgentSwarm>();
    const signed = { purpose: "goal", body: "{}", key: "", signature: "" } as const;
    const open = async (name: string): Promise<AgentSwarm> => {
      const folder = join(root, `met-${name}`);
      mkdirSync(folder, { recursive: true });
      const swarm = await AgentSwarm.open({
        machine: name,
        rack: "r",
        host: "127.0.0.1",
        port: 0,
        caps: noCaps,
        nowMs: () => clock.monotonicMs(),
        log: () => undefined,
        ask: (question) => (isNodeThere ? desk.answer("t", name, question) : Promise.reject(new Error("no node"))),
        async *originUnits() {},
        folder,
        halts: () => (halted.has(name) ? [signed] : []),
        goal(heard) {
          if (halted.has(name)) return;
          halted.set(name, swarm);
          swarm.spread(heard);
        },
      });
      return swarm;
    };
    const names = Array.from({ length: 12 }, (_, i) => `h${i}`);
    const swarms = new Map<string, AgentSwarm>();
    for (const name of names) swarms.set(name, await open(name));
    // Those that came first did not know the others yet.
    for (let times = 0; times < 2; times += 1) for (const swarm of swarms.values()) await swarm.meet();
    isNodeThere = false;
    const { address } = swarms.get("h5") ?? {};
    await swarms.get("h5")?.[Symbol.asyncDispose]();
    swarms.set("h5", await open("h5"));
    equal(swarms.get("h5")?.address, address, "where its neighbours know it");
    swarms.get("h5")?.spread(signed);
    await until("all others have heard of it", () => names.every((name) => name === "h5" || halted.has(name)));
    swarms.get("h5")?.askForHalts();
    await until("and one that missed it can ask", () => halted.has("h5"));
    for (const swarm of swarms.values()) await swarm[Symbol.asyncDispose]();
  });

  test("does not let in a machine without a ticket", async () => {
    const swarm = await AgentSwarm.open({
      machine: "m9",
      rack: "",
      host: "127.0.0.1",
      port: 0,
      caps: noCaps,
      nowMs: () => 0,
      log: () => undefined,
      ask: () => Promise.reject(new Error("no node")),
      async *originUnits() {},
      goal: () => undefined,
    });
    const [host = "", port = ""] = swarm.address.split(":");
    const socket = connect({
      host,
      port: Number(port),
      ...peerTls,
      checkServerIdentity: () => undefined,
      pskCallback: () => ({ identity: "stranger", psk: randomBytes(32) }),
    });
    const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
    ok(/psk|alert/i.test(error.message), error.message);
    await swarm[Symbol.asyncDispose]();
  });
});
