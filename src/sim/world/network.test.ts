import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import type { ShardRequest, ShardService } from "#shard/transport/protocol.ts";
import type { Life } from "./machine.ts";
import { Network, type NetworkConditions } from "./network.ts";
import { Trace } from "#sim/trace.ts";
import { World } from "./world.ts";

const calm: NetworkConditions = {
  latencyMs: 1,
  spikeMs: 0,
  spikeChance: 0,
  lossChance: 0,
  duplicateChance: 0,
  patienceMs: 1_000,
};

function twoMachines(conditions: Partial<NetworkConditions> = {}, heartbeats = 1) {
  const world = new World(new Random(1), new Trace(100));
  const observer = { reached() {}, arrived() {}, left() {}, streamed() {}, injected() {} };
  const network = new Network(world, new Random(2), { ...calm, ...conditions }, observer);
  const machine = (name: string) => world.machine(name, { rate: 1, bootMonotonicMs: 0, wallOffsetMs: 0 });
  const client = machine("client");
  const server = machine("server");
  let served = 0;
  const service: ShardService = {
    async request() {
      served += 1;
      await server.life?.clock.sleep(5);
      return { kind: "overloaded", retryAfterMs: served };
    },
    async *watch() {
      for (let seq = 1; seq <= heartbeats; seq += 1) {
        yield { kind: "heartbeat", stamp: { epoch: 1, seq } };
        await server.life?.clock.sleep(50.3);
      }
      yield { kind: "end", stamp: { epoch: 1, seq: heartbeats + 1 } };
    },
  };
  client.boot();
  const listen = () => network.transport(server.boot()).listen(service);
  const ask = async (signal = new AbortController().signal): Promise<string> => {
    const life = client.life;
    if (!life) return "no client";
    try {
      const response = await network.transport(life).request("sim://server", question, signal);
      return `${response.kind} ${world.nowMs.toFixed(0)}`;
    } catch (error) {
      return isFault(error) ? error.code : String(error);
    }
  };
  return { world, network, client, server, listen, ask, servedCount: () => served };
}

const question: ShardRequest = { kind: "query", shard: 0, query: { kind: "stats" } };

async function settled<T>(world: World, promise: Promise<T>): Promise<T> {
  let value: { readonly it: T } | undefined;
  void promise.then((it) => (value = { it }));
  await world.run(100_000, () => value !== undefined);
  return (value as unknown as { it: T }).it;
}

test("a request is answered after the latency both ways and the work", async () => {
  const { world, listen, ask } = twoMachines();
  await listen();
  equal((await settled(world, ask())).startsWith("overloaded"), true);
});

test("N1: no listener is unavailable, a crash on the way is unknown, silence is unknown", async () => {
  const first = twoMachines();
  equal(await settled(first.world, first.ask()), "unavailable");
  const second = twoMachines();
  await second.listen();
  second.world.after(4, undefined, () => second.server.crash());
  equal(await settled(second.world, second.ask()), "unknown-outcome");
  const third = twoMachines({ lossChance: 1 });
  await third.listen();
  equal(await settled(third.world, third.ask()), "unknown-outcome");
  equal(third.world.nowMs, 1_000);
});

test("N2: a duplicated request is served twice and answered once", async () => {
  const { world, listen, ask, servedCount } = twoMachines({ duplicateChance: 1 });
  await listen();
  await settled(world, ask());
  await world.run(100);
  equal(servedCount(), 2);
});

test("a cut in one direction lets the request through and loses the answer", async () => {
  const { world, network, listen, ask, servedCount } = twoMachines();
  await listen();
  network.cut("server", "client");
  equal(await settled(world, ask()), "unknown-outcome");
  equal(servedCount(), 1);
  network.heal();
  equal((await settled(world, ask())).startsWith("overloaded"), true);
});

test("a watch ends with the machine that served it", async () => {
  const { world, network, client, server, listen } = twoMachines();
  await listen();
  world.after(20, undefined, () => server.crash());
  const seen: string[] = [];
  const watch = async () => {
    const life = client.life;
    if (!life) return;
    const transport = network.transport(life);
    try {
      const request = { shard: 0, job: 1 };
      for await (const { kind } of transport.watch("sim://server", request, new AbortController().signal))
        seen.push(kind);
    } catch (error) {
      seen.push(isFault(error) ? error.code : String(error));
    }
  };
  await settled(world, watch());
  deepEqual(seen, ["heartbeat", "unavailable"]);
});

test("messages of a watch arrive in order, however long one of them was on its way", async () => {
  const { world, network, client, listen } = twoMachines({ spikeMs: 60_000, spikeChance: 0.1 }, 200);
  await listen();
  const seen: number[] = [];
  const watch = async () => {
    const transport = network.transport(client.life as Life);
    const request = { shard: 0, job: 1 };
    for await (const message of transport.watch("sim://server", request, new AbortController().signal))
      if ("stamp" in message) seen.push(message.stamp.seq);
  };
  await settled(world, watch());
  deepEqual(
    seen,
    Array.from({ length: 201 }, (_, i) => i + 1),
  );
});
