import { deepEqual, equal, match, rejects, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import type { Ownership } from "#journal/journal.ts";
import type { ShardRequest, ShardResponse, WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import { createRouter, nameOf, type RouterOptions, type Watched } from "./router.ts";
import { ask, service } from "#shard/testing/exercise-transport.ts";
import { MemoryNetwork } from "#shard/transport/memory.ts";

const at = (epoch: number, seq: number) => ({ epoch, seq });
const answered = (epoch: number, seq: number): ShardResponse => ({
  kind: "answer",
  stamp: at(epoch, seq),
  answer: { executors: [] },
});
const owned = (address: string | undefined, remainingMs = 1_000): Ownership => ({
  shard: 0,
  epoch: 1,
  owner: address,
  address,
  remainingMs,
});

/** Nodes by name, each with a list of its next answers; the map says which node owns shard 0. */
async function world(options: Partial<RouterOptions> = {}) {
  const clock = new ManualClock();
  const network = new MemoryNetwork();
  const asked: string[] = [];
  const map = { owner: "a" as string | undefined, reads: 0 };
  const node = async (name: string, ...says: (ShardResponse | Fault | (() => Promise<ShardResponse>))[]) =>
    await network.transportAt(name).listen(
      service({
        request: async (request) => {
          asked.push(`${name} ${request.kind === "command" ? JSON.stringify(request.command) : nameOf(request)}`);
          const next = says.length > 1 ? says.shift() : says[0];
          if (next instanceof Fault) throw next;
          return typeof next === "function" ? await next() : (next ?? answered(1, 1));
        },
      }),
    );
  const router = createRouter({
    ownerships: async () => {
      map.reads += 1;
      return [owned(map.owner)];
    },
    transport: network.transportAt("me"),
    clock,
    random: new Random(1),
    options,
  });
  return { clock, network, asked, map, node, router };
}

/** Lets time pass until the promise has settled. */
async function during<T>(clock: ManualClock, promise: Promise<T>, stepMs = 10): Promise<T> {
  let settled = false;
  const watched = promise.finally(() => {
    settled = true;
  });
  watched.catch(() => {});
  for (let i = 0; i < 100_000 && !settled; i += 1) await clock.advance(stepMs);
  return await watched;
}

describe("a request", () => {
  test("goes to the owner that the map names, which is read once", async () => {
    const { router, node, asked, map } = await world();
    await node("a", answered(1, 1));
    await Promise.all([router.request(ask(0)), router.request(ask(0))]);
    await router.request(ask(0));
    deepEqual(asked, ["a executors", "a executors", "a executors"]);
    equal(map.reads, 1);
  });

  test("follows a hint without asking the map again", async () => {
    const { router, node, asked, map } = await world();
    await node("a", { kind: "not-owner", shard: 0, hint: "b" });
    await node("b", answered(2, 5));
    deepEqual(await router.request(ask(0)), answered(2, 5));
    deepEqual(asked, ["a executors", "b executors"]);
    equal(map.reads, 1);
  });

  test("R1: is sent again, unchanged, until there is a definite answer", async () => {
    const { router, node, asked, map, clock } = await world();
    const reserve: ShardRequest = {
      kind: "command",
      shard: 0,
      command: { kind: "reserve", executor: "e", offers: [], prefer: [], count: 1, start: false, nonce: "n1" },
    };
    await node(
      "a",
      { kind: "interrupted", why: "fenced" },
      new Fault("unknown-outcome", "call"),
      { kind: "overloaded", retryAfterMs: 500 },
      () => {
        map.owner = "b";
        return Promise.resolve({ kind: "not-owner", shard: 0, hint: undefined });
      },
    );
    await node("b", { kind: "reply", stamp: at(2, 1), reply: { grants: [] } });
    const began = clock.monotonicMs();
    await during(clock, router.request(reserve));
    const line = `a ${JSON.stringify(reserve.command)}`;
    deepEqual(asked, [line, line, line, line, line.replace(/^a/, "b")]);
    equal(clock.monotonicMs() - began >= 500, true, "the overloaded owner was given its time");
  });

  test("R1: its caller is notified before every further try, and may stop it", async () => {
    const { clock, router, node, asked } = await world();
    await node("a", new Fault("unknown-outcome", "ask", {}), new Fault("unavailable", "ask", {}), answered(1, 1));
    const heard: number[] = [];
    await during(clock, router.request(ask(0), { again: async () => void heard.push(asked.length) }));
    deepEqual(heard, [1, 2]);
    equal(asked.length, 3);
    const other = await world();
    await other.node("a", new Fault("unavailable", "ask", {}));
    const enough = async (): Promise<void> => {
      throw new Fault("not-found", "look again", {});
    };
    const request = other.router.request(ask(0), { again: enough });
    await rejects(during(other.clock, request), (e) => isFault(e, "not-found"));
    equal(other.asked.length, 1);
  });

  test("R2: an answer older than what was seen is dropped, and the request is sent again", async () => {
    const { router, node, clock, asked } = await world();
    await node("a", answered(3, 10), answered(2, 99), answered(3, 9), answered(3, 11));
    await router.request(ask(0));
    deepEqual(await during(clock, router.request(ask(0))), answered(3, 11));
    equal(asked.length, 4);
    deepEqual(router.seen(0), at(3, 11));
  });

  test("R2: answers that overtake each other are all accepted", async () => {
    const { router, node, clock } = await world();
    const slow = Promise.withResolvers<ShardResponse>();
    await node("a", () => slow.promise, answered(1, 7));
    const first = router.request(ask(0));
    await clock.advance(1);
    deepEqual(await router.request(ask(0)), answered(1, 7));
    slow.resolve(answered(1, 6));
    deepEqual(await first, answered(1, 6));
  });

  test("R3: ends with the deadline, saying what was tried", async () => {
    const { router, clock, map } = await world();
    map.owner = "gone";
    const query = during(clock, router.request(ask(0), { deadlineMs: 2_000 }));
    await rejects(query, (error) => {
      match(
        (error as Error).message,
        /^ask shard 0 to executors: unavailable \(tries=\d+ afterMs=\d+ tried=gone last=connect: unavailable .*\)$/,
      );
      return isFault(error, "unavailable");
    });
  });

  test("R3: a command that may have been done says so at the end", async () => {
    const { router, clock, node } = await world();
    await node("a", { kind: "interrupted", why: "lost its lease" });
    const cancel: ShardRequest = { kind: "command", shard: 0, command: { kind: "cancel", job: 1, reason: "" } };
    await rejects(during(clock, router.request(cancel, { deadlineMs: 1_000 })), (e) => isFault(e, "unknown-outcome"));
  });

  test("R3: an owner that never answers is given up, try by try, and so is a map that cannot be read", async () => {
    const { router, clock, node, asked } = await world({ tryMs: 1_000 });
    await node("a", () => new Promise(() => {}));
    await rejects(during(clock, router.request(ask(0), { deadlineMs: 3_500 })), (e) => isFault(e, "unavailable"));
    equal(asked.length, 4);

    const stuck = createRouter({
      ownerships: () => new Promise(() => {}),
      transport: new MemoryNetwork().transportAt("me"),
      clock,
      random: new Random(1),
    });
    await rejects(during(clock, stuck.request(ask(0), { deadlineMs: 1_000 })), (e) => isFault(e, "unavailable"));
    equal(clock.pending, 0);
  });

  test("an owner that hangs is left as soon as the map names another", async () => {
    const { router, node, map, clock, asked } = await world({ tryMs: 10_000, doubtMs: 500 });
    await node("a", () => new Promise(() => {}));
    await node("b", answered(2, 1));
    const began = clock.monotonicMs();
    clock.after(1_200, () => (map.owner = "b"));
    deepEqual(await during(clock, router.request(ask(0))), answered(2, 1));
    deepEqual(asked, ["a executors", "b executors"]);
    equal(clock.monotonicMs() - began < 2_000, true, "long before the try would have ended");
    equal(map.reads <= 4, true, "and the map was not read without end");
  });

  test("a caller with a short deadline leaves a fresh map to the next one", async () => {
    const { router, node, map, clock, asked } = await world({ doubtMs: 500 });
    await node("a", () => new Promise(() => {}));
    await node("b", answered(2, 1));
    const impatient = async (): Promise<unknown> => {
      const stop = new AbortController();
      clock.after(100, () => stop.abort(new Error("enough")));
      return await during(clock, router.request(ask(0), { signal: stop.signal }));
    };
    await rejects(impatient(), /enough/);
    map.owner = "b";
    await clock.advance(1_000);
    await rejects(impatient(), /enough/);
    deepEqual(await impatient(), answered(2, 1));
    deepEqual(asked, ["a executors", "a executors", "b executors"]);
  });

  test("two nodes that point at each other are not asked without a pause", async () => {
    const { router, clock, node, asked } = await world();
    await node("a", { kind: "not-owner", shard: 0, hint: "b" });
    await node("b", { kind: "not-owner", shard: 0, hint: "a" });
    await rejects(during(clock, router.request(ask(0), { deadlineMs: 1_000 })), (e) => isFault(e, "unavailable"));
    equal(asked.length < 15, true, `asked ${asked.length} times in a second`);
  });

  test("a permanent failure is not retried", async () => {
    const { router, node, asked } = await world();
    await node("a", new Fault("invalid", "read request"));
    await rejects(router.request(ask(0)), (e) => isFault(e, "invalid"));
    equal(asked.length, 1);
  });

  test("to a shard that does not exist is refused at once", async () => {
    const { router, node } = await world();
    await node("a", answered(1, 1));
    await rejects(router.request(ask(1)), (e) => isFault(e, "not-found"));
  });

  test("to the node's own shards does not use the network", async () => {
    const network = new MemoryNetwork();
    const router = createRouter({
      self: service({ request: async () => answered(1, 1) }),
      selfAddress: "me",
      ownerships: async () => [owned("me")],
      transport: network.transportAt("me"),
      clock: new ManualClock(),
      random: new Random(1),
    });
    deepEqual(await router.request(ask(0)), answered(1, 1));
  });

  test("ends at once when its caller aborts", async () => {
    const { router, clock, map } = await world();
    map.owner = undefined;
    const abort = new AbortController();
    const asking = router.request(ask(0), { signal: abort.signal });
    await clock.advance(100);
    abort.abort(new Error("never mind"));
    await rejects(asking, /never mind/);
    equal(clock.pending, 0);
  });
});

describe("a watch", () => {
  const events = (epoch: number, seq: number): WatchMessage => ({ kind: "events", stamp: at(epoch, seq), events: [] });
  const end = (epoch: number, seq: number): WatchMessage => ({ kind: "end", stamp: at(epoch, seq) });

  async function watching(
    streams: Record<string, (request: WatchRequest, signal: AbortSignal) => AsyncIterable<WatchMessage>>,
    options: Partial<RouterOptions> = {},
    heardMax = Number.POSITIVE_INFINITY,
  ) {
    const clock = new ManualClock();
    const network = new MemoryNetwork();
    const map = { owner: "a" };
    for (const [name, watch] of Object.entries(streams)) await network.transportAt(name).listen(service({ watch }));
    const router = createRouter({
      ownerships: async () => [owned(map.owner)],
      transport: network.transportAt("me"),
      clock,
      random: new Random(1),
      options,
    });
    const got: string[] = [];
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      const stream: AsyncIterable<Watched> = router.watch({ shard: 0, job: 1 }, abort.signal);
      for await (const { kind, stamp } of stream)
        if (got.push(`${kind} ${stamp.epoch}.${stamp.seq}`) === heardMax) return;
    };
    return { clock, map, got, abort, run: () => during(clock, run()) };
  }

  test("continues at the next owner where the last one stopped, without repeating anything", async () => {
    const asked: (string | undefined)[] = [];
    const note = (request: WatchRequest): void =>
      void asked.push(request.after && `${request.after.epoch}.${request.after.seq}`);
    const { run, got } = await watching({
      async *a(request) {
        note(request);
        yield events(1, 1);
        yield events(1, 2);
        yield { kind: "moved", hint: "b" };
      },
      async *b(request) {
        note(request);
        yield events(2, 2); // the same batch, from another owner
        yield events(2, 3);
        yield end(2, 3);
      },
    });
    await run();
    deepEqual(got, ["events 1.1", "events 1.2", "events 2.3", "end 2.3"]);
    deepEqual(asked, [undefined, "1.2"]);
  });

  test("survives a stream that breaks, one that ends early, and an owner of the past", async () => {
    let turn = 0;
    const { run, got } = await watching({
      async *a() {
        turn += 1;
        if (turn === 1) {
          yield events(5, 1);
          throw new Fault("unknown-outcome", "call watch");
        }
        if (turn === 2) return;
        if (turn === 3) yield events(4, 9); // has lost the shard, and does not know it
        if (turn === 4) yield end(5, 2);
      },
    });
    await run();
    deepEqual(got, ["events 5.1", "end 5.2"]);
  });

  test("a silent owner is left, even without a heartbeat to miss", async () => {
    let turn = 0;
    const { run, got } = await watching(
      {
        async *a() {
          turn += 1;
          if (turn === 1) await new Promise(() => {});
          yield end(1, 1);
        },
      },
      { watchSilenceMs: 500 },
    );
    await run();
    deepEqual(got, ["end 1.1"]);
    equal(turn, 2);
  });

  test("leaves nothing behind when the watcher stops early", async () => {
    let isLeft = false;
    const a = async function* () {
      try {
        yield events(1, 1);
        yield events(1, 2);
      } finally {
        isLeft = true;
      }
    };
    const { run, got, clock } = await watching({ a }, {}, 1);
    await run();
    deepEqual(got, ["events 1.1"]);
    ok(isLeft, "the owner is told");
    equal(clock.pending, 0);
  });

  test("gives up when no owner has been found for long", async () => {
    const { run, map } = await watching({}, { watchLostMsMax: 5_000 });
    map.owner = "gone";
    await rejects(run(), (e) => isFault(e, "unavailable") && /watch job/.test(e.message));
  });
});
