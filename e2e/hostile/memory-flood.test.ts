/** A member floods a real node with little memory: the node refuses, survives, and comes back after kill -9. */
import { equal, match, ok } from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Submit } from "#kernel/model/command.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { JobView } from "#kernel/read/query.ts";
import { createGrpcTransport, type GrpcTransport } from "#shard/transport/grpc-transport.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";
import { clearAway } from "#testing/clear-away.ts";
import { endChild } from "#testing/end-child.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { plainTemplate } from "#kernel/testing/template.ts";

const main = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const heapMb = 192;
const shards = 8;
const KiB = 1024;

const secretOf = (name: string): string => createHash("sha256").update(`flood ${name}`).digest("hex");
const people = [
  { name: "flooder", tenant: "flooder", roles: ["member", "executor", "viewer"] },
  { name: "second", tenant: "second", roles: ["member"] },
  { name: "quiet", tenant: "quiet", roles: ["member"] },
] as const;
type Person = (typeof people)[number]["name"];

/** The program as a separate process, with little memory. */
class FloodedNode implements AsyncDisposable {
  readonly #data: string;
  readonly #edge: string;
  readonly #transports = new Map<Person, GrpcTransport>();
  #child: ChildProcess | undefined;
  text = "";

  private constructor(data: string, edge: string) {
    this.#data = data;
    this.#edge = edge;
  }

  static async open(settings: object = {}): Promise<FloodedNode> {
    const folder = await mkdtemp(join(tmpdir(), "millrace-flood-"));
    const edge = `127.0.0.1:${await freePort()}`;
    const tokens = people.map((one) => ({
      ...one,
      sha256: createHash("sha256").update(secretOf(one.name)).digest("hex"),
    }));
    const config = {
      cluster: { shards },
      worker: { enabled: false },
      edge: { listen: [edge], identity: { tokens } },
      ...settings,
    };
    await writeFile(join(folder, "config.yaml"), JSON.stringify(config));
    const node = new FloodedNode(folder, edge);
    await node.start();
    return node;
  }

  async start(): Promise<void> {
    const args = [`--max-old-space-size=${heapMb}`, "--max-semi-space-size=8", main, "up", "--data", this.#data];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => (this.text += part.toString()));
    const isReady = async (): Promise<boolean> => {
      ok(this.isAlive, `the node ended by itself:\n${this.text.slice(-3_000)}`);
      return fetch(`http://${this.#edge}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
    };
    await until("the node is ready", isReady, { limitMs: 60_000, everyMs: 50 });
  }

  get isAlive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  async kill(): Promise<void> {
    await endChild(this.#child, "SIGKILL");
  }

  async metric(series: string): Promise<number> {
    const headers = { authorization: `Bearer ${secretOf("flooder")}` };
    const text = await (await fetch(`http://${this.#edge}/metrics`, { headers })).text();
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1),
    );
  }

  /** Waits while the shard is still being read. */
  async settled(person: Person, shard: number, command: Submit): Promise<string> {
    let kind = "";
    const isSettled = async (): Promise<boolean> => {
      ({ kind } = await this.submit(person, shard, command));
      return kind === "reply" || kind === "rejected";
    };
    await until(`shard ${shard} answers`, isSettled, { limitMs: 60_000, everyMs: 100 });
    return kind;
  }

  request(person: Person, request: Parameters<GrpcTransport["request"]>[1]): Promise<ShardResponse> {
    let transport = this.#transports.get(person);
    if (!transport) {
      const metadata = [["authorization", `Bearer ${secretOf(person)}`]] as const;
      transport = createGrpcTransport({ clock, via: "router", metadata });
      this.#transports.set(person, transport);
    }
    return transport.request(`grpc:${this.#edge}`, request, AbortSignal.timeout(30_000));
  }

  submit(person: Person, shard: number, command: Submit): Promise<ShardResponse> {
    return this.request(person, { kind: "command", shard, command });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    for (const transport of this.#transports.values()) await transport.close();
    clearAway(this.#data);
  }
}

const template = { ...plainTemplate, kind: "flood.task", requires: ["nobody=offers"], attemptsMax: 1 } as const;

/** All specs differ: nothing is shared. */
const specOf = (length: number): string => randomUUID().padEnd(length, "x");

function jobOf(tenant: string, tasks: number, specLength: number, more: Partial<Submit> = {}): Submit {
  const plans = Array.from({ length: tasks }, (_, i) => ({ key: `t${i}`, spec: specOf(specLength) }));
  const stage = { name: "all", needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 } as const;
  return {
    kind: "submit",
    tenant,
    door: "flood",
    name: "flood",
    payloadHash: "",
    priority: 0,
    spec: "",
    stages: [{ ...stage, tasks: { template, tasks: plans } }],
    deadlineMs: 3_600_000,
    ...more,
  };
}

type Flood = { taken: number; refused: number; why: string };

/** Submits until this many in a row were refused, or enough was sent. */
async function flood(node: FloodedNode, person: Person, make: () => Submit, sentMax: number): Promise<Flood> {
  const seen: Flood = { taken: 0, refused: 0, why: "" };
  let sent = 0;
  let inARow = 0;
  const one = async (): Promise<void> => {
    while (sent < sentMax && inARow < 20) {
      sent += 1;
      const response = await node.submit(person, sent % shards, make());
      ok(node.isAlive, `the node died after ${seen.taken} jobs:\n${node.text.slice(-2_000)}`);
      if (response.kind === "reply") {
        seen.taken += 1;
        inARow = 0;
      } else {
        seen.refused += 1;
        if (response.kind !== "rejected") continue; // overloaded: it asks to wait, for the moment
        seen.why = JSON.stringify(response.rejection);
        inARow += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, one));
  return seen;
}

const limited = { timeout: 170_000 };

test("64 KiB specs exceed the node's memory: it survives, and comes back", limited, async () => {
  await using node = await FloodedNode.open();
  // 70 submits of 3.75 MiB are 262 MiB: more than the heap may grow to.
  const seen = await flood(node, "flooder", () => jobOf("flooder", 60, 64 * KiB - 64), 70);
  ok(seen.taken > 0);
  equal(await node.settled("quiet", 1, jobOf("quiet", 1, 200)), "reply");
  await node.kill();
  await node.start();
  equal(await node.settled("quiet", 2, jobOf("quiet", 1, 200)), "reply");
});

test("small specs fill the memory: tenants are refused one by one, others are served", limited, async () => {
  await using node = await FloodedNode.open();
  const first = await flood(node, "flooder", () => jobOf("flooder", 1_000, 2 * KiB), 300);
  match(first.why, /"kind":"(shard|queue)-full".*"retryAfterMs":\d+/);
  const second = await flood(node, "second", () => jobOf("second", 1_000, 2 * KiB), 300);
  ok(second.taken > 0, "another tenant has its own share of what is left");
  match(second.why, /"kind":"(shard|queue)-full"/);
  equal(await node.settled("quiet", 1, jobOf("quiet", 1, 200)), "reply");
  ok((await node.metric('millrace_work_refused_total{what="memory"}')) > 0);
  match(node.text, /new work is refused, for the first time now: no room for memory for tenant flooder/);
  const before = await node.metric("millrace_work_memory_bytes");
  await node.kill();
  await node.start();
  const isBack = async (): Promise<boolean> => (await node.metric("millrace_work_memory_bytes")) > 0.99 * before;
  await until("all shards are served again", isBack, { limitMs: 60_000, everyMs: 100 });
  equal(await node.settled("flooder", 1, jobOf("flooder", 1_000, 2 * KiB)), "rejected");
  equal(await node.settled("quiet", 2, jobOf("quiet", 1, 200)), "reply");
});

test("a spec that was moved to the store is returned whole to readers and workers", limited, async () => {
  await using node = await FloodedNode.open();
  const [jobSpec, taskSpec] = [specOf(50 * KiB), `${specOf(20 * KiB)} \u{1F30A}`];
  const job = jobOf("flooder", 1, 10, { spec: jobSpec });
  const tasks = { template: { ...template, requires: [] }, tasks: [{ key: "t", spec: taskSpec }] };
  const submitted = await node.submit("flooder", 3, { ...job, stages: [{ ...job.stages[0]!, tasks }] });
  ok(submitted.kind === "reply");
  const { job: number } = submitted.reply as { job: number };
  const look = async (): Promise<string> => {
    const answer = await node.request("flooder", { kind: "query", shard: 3, query: { kind: "job", job: number } });
    ok(answer.kind === "answer");
    return (answer.answer as JobView).spec;
  };
  equal(await look(), jobSpec);
  await node.kill();
  await node.start();
  equal(await node.settled("quiet", 3, jobOf("quiet", 1, 200)), "reply");
  equal(await look(), jobSpec);
  const reserve = { kind: "reserve", executor: "flooder", offers: [], prefer: [], count: 1, nonce: "n" } as const;
  const given = await node.request("flooder", { kind: "command", shard: 3, command: { ...reserve, start: true } });
  ok(given.kind === "reply");
  equal((given.reply as { grants: readonly Grant[] }).grants[0]?.spec, taskSpec);
});
