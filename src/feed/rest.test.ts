/** A hub that comes to rest and is wanted again at once. */
import { ok } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { FeedAnswer } from "./desk.ts";
import { FeedHub, type HubPorts } from "./hub.ts";

test("a lane from before the rest ends, although a reader has joined again", async () => {
  const clock = new ManualClock();
  const elsewhere: readonly FeedAnswer[] = [{ kind: "elsewhere", shard: 0 }];
  const first = Promise.withResolvers<readonly FeedAnswer[]>();
  const never = new Promise<never>(() => {});
  let asked = 0;
  let looked = 0;
  const ports: HubPorts = {
    clock,
    shards: () => 1,
    ownerOf: () => "",
    async ask() {
      asked += 1;
      if (asked === 1) return await first.promise;
      return asked < 1_000 ? elsewhere : await never;
    },
    replayed: { slice: () => never } as unknown as HubPorts["replayed"],
    tailOf: () => ((looked += 1) === 1 ? Promise.resolve(0) : never),
    report: () => {},
    settings: { lingerMs: 100, lookMs: 50 },
  };
  const hub = new FeedHub(ports);
  await hub.join();
  hub.leave();
  await clock.advance(1_000);
  void hub.join();
  first.resolve(elsewhere);
  await clock.advance(1_000);
  ok(asked < 10, `${asked} questions`);
  hub.stop();
});
