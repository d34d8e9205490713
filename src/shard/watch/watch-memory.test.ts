import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Event } from "#kernel/model/event.ts";
import { defaultHostSettings } from "#shard/host/settings.ts";
import { Load } from "#shard/host/load.ts";
import type { WatchRequest } from "#shard/transport/protocol.ts";
import { Waiters } from "./waiters.ts";
import { weighEvents, WatchMemory } from "./watch-memory.ts";
import { Watchers, type WatcherLimits } from "./watchers.ts";
import { reserve } from "#shard/testing/host.ts";

const limits: WatcherLimits = { ...defaultHostSettings, watchersMax: 6, unreadBytesMax: 3_000 };
const heartbeatAt = { epoch: 1, seq: 1 };

const failed = (messageLength: number): Event => ({
  kind: "attempt-ended",
  task: 1,
  token: 1,
  outcome: "failed",
  reason: "user-failure",
  message: "m".repeat(messageLength),
  next: { do: "fail" },
  at: 1,
});

class Scene {
  readonly memory: WatchMemory;
  readonly watchers: Watchers;
  #seq = 1;

  constructor(nodeBytesMax = 1_000_000) {
    this.memory = new WatchMemory(nodeBytesMax);
    this.watchers = new Watchers(limits, this.memory);
    this.watchers.beginAfter(1);
  }

  watch(job: number, tenant = "acme") {
    const request: WatchRequest = { shard: 0, job, tenant };
    const watcher = this.watchers.create(request);
    this.watchers.resume(watcher, heartbeatAt, { stamp: heartbeatAt, ended: false });
    watcher.read();
    return watcher;
  }

  publish(job: number, bytes: number): void {
    this.#seq += 1;
    const events = [failed(bytes)];
    this.watchers.publish({ stamp: { epoch: 1, seq: this.#seq }, events, jobs: [job], sizeBytes: bytes });
  }
}

describe("unread messages of watchers are limited in bytes", () => {
  test("per watcher: it falls behind, and its memory is freed", () => {
    const scene = new Scene();
    const watcher = scene.watch(1);
    scene.publish(1, 1_000);
    scene.publish(1, 1_000);
    deepEqual([watcher.behind, scene.memory.bytes], [false, 2_400]);
    scene.publish(1, 1_000);
    deepEqual([watcher.behind, scene.memory.bytes, scene.watchers.size], [true, 0, 0]);
  });

  test("a single message is delivered however large it is", () => {
    const scene = new Scene(100);
    const watcher = scene.watch(1);
    scene.publish(1, 100_000);
    equal(watcher.behind, false);
    equal(watcher.read()?.kind, "events");
    equal(scene.memory.bytes, 0);
  });

  test("for all watchers of a node together, whatever shard they watch", () => {
    const scene = new Scene(3_000);
    const [first, second] = [scene.watch(1), scene.watch(2)];
    scene.publish(1, 1_000);
    scene.publish(2, 1_000);
    scene.publish(2, 1_000);
    deepEqual([first.behind, second.behind], [false, true]);
    first.leave();
    equal(scene.memory.bytes, 0);
  });

  test("every event with a text counts its text", () => {
    ok(weighEvents([failed(50_000)]) >= 50_000);
    const result = { payload: "p".repeat(10_000), digests: [] };
    ok(weighEvents([{ kind: "committed", task: 1, token: 1, result, at: 1 }]) >= 10_000);
  });
});

test("a tenant may have at most as many watches as are left for all others", () => {
  const scene = new Scene();
  const request = (tenant: string): WatchRequest => ({ shard: 0, job: 1, tenant });
  const counts = ["a", "b", "c"].map((tenant) => {
    let count = 0;
    for (; scene.watchers.hasRoomFor(request(tenant)); count += 1) scene.watch(count, tenant);
    return count;
  });
  deepEqual(counts, [3, 2, 1]);
});

describe("executors that wait for work", () => {
  test("are limited by their size, in all shards together", () => {
    const load = new Load({ ...defaultHostSettings, heldBytesMax: 1_000 });
    deepEqual([load.hold(600), load.hold(600)], [false, true].toReversed());
    load.release(600);
    ok(load.hold(600));
  });

  test("copies of the same request are held a few times only", () => {
    const waiters = new Waiters(10);
    const asked = reserve({ nonce: "same" });
    let held = 0;
    while (held < 100 && waiters.add(asked, { settle() {} }, 1_000)) held += 1;
    equal(held, 16);
    equal(waiters.size, 1);
    ok(waiters.add(reserve({ nonce: "other" }), { settle() {} }, 1_000));
  });
});
