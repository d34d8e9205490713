/** The tests that every transport must pass: call `exerciseTransport` from the test file of an implementation. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardRequest, ShardResponse, ShardService, WatchMessage } from "#shard/transport/protocol.ts";
import type { Transport } from "#shard/transport/transport.ts";

export type TransportPair = {
  readonly server: Transport;
  readonly client: Transport;
  /** An address without a listener. */
  readonly nowhere: string;
  readonly dispose?: () => Promise<void>;
};

export function exerciseTransport(name: string, make: () => Promise<TransportPair>): void {
  const check = (title: string, body: (pair: TransportPair) => Promise<void>): void => {
    test(title, async () => {
      const pair = await make();
      try {
        await body(pair);
      } finally {
        await pair.client.close();
        await pair.server.close();
        await pair.dispose?.();
      }
    });
  };

  describe(`${name} keeps the promises of a transport`, () => {
    check("a request gets its own answer, however many are on their way", async ({ server, client }) => {
      const { address } = await server.listen(service({ request: async (request) => stats(request.shard) }));
      const asked = Array.from({ length: 100 }, (_, shard) => client.request(address, ask(shard), never));
      deepEqual(
        await Promise.all(asked),
        Array.from({ length: 100 }, (_, shard) => stats(shard)),
      );
    });

    check("what was never delivered is unavailable", async ({ client, nowhere }) => {
      await rejects(client.request(nowhere, ask(1), never), (e) => isFault(e, "unavailable"));
      await rejects(collect(client.watch(nowhere, { shard: 1, job: 1 }, never)), (e) => isFault(e, "unavailable"));
    });

    check("a Fault of the service keeps its code and its facts", async ({ server, client }) => {
      const { address } = await server.listen(
        service({
          request: () => Promise.reject(new Fault("exhausted", "take a seat", { seats: 3 })),
        }),
      );
      await rejects(
        client.request(address, ask(1), never),
        (e) => isFault(e, "exhausted") && e.doing === "take a seat" && e.facts["seats"] === 3,
      );
    });

    check("a watch brings every message in order, and then ends", async ({ server, client }) => {
      const count = 500; // more than the credit for messages in flight
      const { address } = await server.listen(
        service({
          async *watch() {
            for (let seq = 1; seq <= count; seq += 1) yield heartbeat(seq);
          },
        }),
      );
      const got = await collect(client.watch(address, { shard: 0, job: 1 }, never));
      deepEqual(
        got,
        Array.from({ length: count }, (_, i) => heartbeat(i + 1)),
      );
    });

    check("a watcher that goes away ends the watch at the service", async ({ server, client }) => {
      const gone = Promise.withResolvers<void>();
      const { address } = await server.listen(
        service({
          async *watch(_, signal) {
            signal.addEventListener("abort", () => gone.resolve());
            yield heartbeat(1);
            await gone.promise;
          },
        }),
      );
      const abort = new AbortController();
      const watching = client.watch(address, { shard: 0, job: 1 }, abort.signal)[Symbol.asyncIterator]();
      deepEqual((await watching.next()).value, heartbeat(1));
      const reason = new Error("seen enough");
      const next = watching.next();
      abort.abort(reason);
      await rejects(next, reason);
      await gone.promise;
    });

    check("an aborted request rejects with the reason and is cancelled at the service", async ({ server, client }) => {
      const arrived = Promise.withResolvers<void>();
      const cancelled = Promise.withResolvers<void>();
      const { address } = await server.listen(
        service({
          request: (_, signal) => {
            signal?.addEventListener("abort", () => cancelled.resolve());
            arrived.resolve();
            return new Promise(() => {});
          },
        }),
      );
      const abort = new AbortController();
      const reason = new Error("never mind");
      const asked = client.request(address, ask(1), abort.signal);
      const refused = rejects(asked, reason);
      await arrived.promise;
      abort.abort(reason);
      await refused;
      await cancelled.promise;
    });

    check("nobody is served after the end, and another listener may follow", async ({ server, client }) => {
      const first = await server.listen(service({ request: async () => stats(1) }));
      deepEqual(await client.request(first.address, ask(1), never), stats(1));
      await first.close();
      await rejects(client.request(first.address, ask(1), never), (e) => isFault(e));
      const second = await server.listen(service({ request: async () => stats(2) }));
      deepEqual(await client.request(second.address, ask(1), never), stats(2));
    });

    check("what is sent is a copy", async ({ server, client }) => {
      let seen: ShardRequest | undefined;
      const { address } = await server.listen(
        service({
          request: async (request) => {
            seen = request;
            return stats(1);
          },
        }),
      );
      const sent = ask(5);
      await client.request(address, sent, never);
      deepEqual(seen, sent);
      ok(seen !== sent);
      equal(seen?.shard, 5);
    });
  });
}

export const never = new AbortController().signal;
export const ask = (shard: number): ShardRequest => ({ kind: "query", shard, query: { kind: "executors" } });
export const heartbeat = (seq: number): WatchMessage => ({ kind: "heartbeat", stamp: { epoch: 1, seq } });

export const stats = (shard: number): ShardResponse => ({
  kind: "answer",
  stamp: { epoch: 1, seq: shard },
  answer: { executors: [] },
});

export function service(partial: Partial<ShardService>): ShardService {
  return {
    request: () => Promise.reject(new Fault("internal", "serve", { why: "not in this test" })),
    // oxlint-disable-next-line require-yield
    async *watch() {
      throw new Fault("internal", "serve", { why: "not in this test" });
    },
    ...partial,
  };
}

export async function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) all.push(message);
  return all;
}
