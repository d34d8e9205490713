import { equal } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import type { ForgeEvent } from "./forge-event.ts";
import { type ForkRule, Strangers } from "./strangers.ts";

const repository = { tenant: "acme", name: "mill/flour" } as Parameters<Strangers["mustWait"]>[0];
const event = (user: string, more: object = {}, isFork = true): ForgeEvent => ({
  name: "pull_request",
  actor: "sender",
  payload: { pull_request: { user: { login: user }, ...more } },
  pull: { number: 1, head: "a".repeat(40), headRef: "topic", baseRef: "main", isFork },
});

test("CI-57 a fork's run waits for a person until a request of its author was merged", async () => {
  const records = watchedRecords(
    memoryRecords(() => 0),
    new ManualClock(1_000),
  );
  const strangers = (rule: ForkRule): Strangers => new Strangers(records, rule);
  const some = strangers("first-time");
  equal(await some.mustWait(repository, event("eve")), true);
  equal(await some.mustWait(repository, event("eve", {}, false)), false, "the repository's own branches");
  equal(await some.mustWait(repository, event("eve", { author_association: "CONTRIBUTOR" })), false);
  equal(await some.mustWait(repository, event("eve", { author_association: "FIRST_TIMER" })), true);
  await some.learn(repository, { ...event("eve", { merged: false }), action: "closed" });
  equal(await some.mustWait(repository, event("Eve")), true, "it was closed only");
  await some.learn(repository, { ...event("eve", { merged: true }), action: "closed" });
  equal(await some.mustWait(repository, event("Eve")), false);
  equal(await some.mustWait({ ...repository, tenant: "other" }, event("eve")), true);
  equal(await strangers("all").mustWait(repository, event("eve")), true);
  equal(await strangers("none").mustWait(repository, event("mallory")), false);
});
