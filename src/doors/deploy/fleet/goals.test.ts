/** The chain of goals in the store: who may append, and what a version names. */
import { equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { createKey, signerOf } from "#doors/deploy/signing/signing.ts";
import { change, digest } from "#doors/deploy/testing/goals.ts";
import { GoalStore } from "./goals.ts";

const at = { tenant: "acme", service: "web", region: "eu" };

function storeOf(): GoalStore {
  const signer = signerOf(createKey().privatePem);
  const store = createMemoryStore({ clock, sizeBytesMax: 2 ** 20 });
  return new GoalStore({ index: createMemoryIndex(), store, signer: () => Promise.resolve(signer), clock });
}

describe("the goals of a service", () => {
  test("DEPLOY-7: of three that saw the same goal one goes on, and the others find out", async () => {
    const goals = storeOf();
    const first = await goals.append(at, undefined, change());
    const racing = [
      goals.append(at, first, change({ release: "j2-1", manifest: digest("b") })),
      goals.append(at, first, change({ release: "j3-1", manifest: digest("c") })),
      goals.append(at, first, change({ release: "j4-1", kind: "rollback" })),
    ];
    const ended = await Promise.allSettled(racing);
    equal(ended.filter(({ status }) => status === "fulfilled").length, 1);
    for (const one of ended)
      if (one.status === "rejected") ok(/another release wrote a newer one/.test(String(one.reason)));
    equal((await goals.head(at))?.goal.version, 2);
    await rejects(goals.append(at, first, change()), { code: "stale" });
  });

  test("DEPLOY-3: a version is a digest, and what ended well before is known by its digest, too", async () => {
    const goals = storeOf();
    await goals.setStable(at, digest("a"));
    await goals.setStable(at, digest("b"));
    equal((await goals.stable(at))?.before, digest("a"));
    await goals.setStable(at, digest("b"));
    equal((await goals.stable(at))?.before, digest("a"), "the same again is no step in its history");
  });

  test("DEPLOY-23: a halt is a goal like any other, of one tenant and region", async () => {
    const goals = storeOf();
    const first = await goals.append(at, undefined, change());
    const halted = await goals.amend(at, first, { halted: true });
    equal(halted.goal.version, 2);
    equal(halted.goal.manifest, first.goal.manifest);
    equal((await goals.heads("acme", "eu")).length, 1);
    equal((await goals.heads("acme", "us")).length, 0);
    equal((await goals.heads("other", "eu")).length, 0);
  });
});
