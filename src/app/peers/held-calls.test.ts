import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardRequest, ShardResponse, ShardService, WatchMessage } from "#shard/transport/protocol.ts";
import { untilLeaving } from "./held-calls.ts";

const reserve = (waitMs?: number): ShardRequest => ({
  kind: "command",
  shard: 0,
  command: { kind: "reserve", executor: "e", offers: [], prefer: [], count: 1, start: true, nonce: "n" },
  ...(waitMs === undefined ? {} : { waitMs }),
});
const overloaded: ShardResponse = { kind: "overloaded", retryAfterMs: 1 };

/** Answers when the test says so. */
class SlowService implements ShardService {
  readonly asked: PromiseWithResolvers<ShardResponse>[] = [];

  request(): Promise<ShardResponse> {
    const asked = Promise.withResolvers<ShardResponse>();
    this.asked.push(asked);
    return asked.promise;
  }

  async *watch(_request: unknown, signal: AbortSignal): AsyncGenerator<WatchMessage> {
    yield { kind: "heartbeat", stamp: { epoch: 1, seq: 1 } };
    await new Promise((wake) => signal.addEventListener("abort", wake));
    signal.throwIfAborted();
  }
}

function leavingNode() {
  const leaving = new AbortController();
  const slow = new SlowService();
  const leave = (): void => leaving.abort(new Fault("unavailable", "hold a call", { why: "the node is stopping" }));
  return { slow, leave, service: untilLeaving(slow, leaving.signal) };
}

const isLetGo = (error: unknown): boolean => isFault(error, "unavailable") && error.doing === "hold a call";

describe("a node that stops", () => {
  test("ends the calls that it holds, and those that come to be held", async () => {
    const { slow, leave, service } = leavingNode();
    const held = [service.request(reserve(100)), service.request(reserve(100))];
    leave();
    for (const one of held) await rejects(one, isLetGo);
    await rejects(service.request(reserve(100)), isLetGo);
    equal(slow.asked.length, 2);
  });

  test("still answers calls that are not held", async () => {
    const { slow, leave, service } = leavingNode();
    const asked = [service.request(reserve()), service.request(reserve(0))];
    leave();
    for (const one of slow.asked) one.resolve(overloaded);
    deepEqual(await Promise.all(asked), [overloaded, overloaded]);
  });

  test("does not affect calls that were answered before", async () => {
    const { slow, leave, service } = leavingNode();
    const [answered, failed] = [service.request(reserve(100)), service.request(reserve(100))];
    slow.asked[0]?.resolve(overloaded);
    slow.asked[1]?.reject(new Fault("internal", "ask"));
    deepEqual(await answered, overloaded);
    await rejects(failed, (error) => isFault(error, "internal"));
    leave();
    deepEqual(await answered, overloaded);
  });

  test("ends watches", async () => {
    const { leave, service } = leavingNode();
    const watched = service.watch({ shard: 0, job: 1 }, new AbortController().signal)[Symbol.asyncIterator]();
    equal((await watched.next()).done, false);
    const next = watched.next();
    leave();
    await rejects(next, isLetGo);
  });
});
