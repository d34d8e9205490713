import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { Have, shapeOf } from "./units.ts";
import { priorities, Uploads, type Caps, type UploadEffect, type UploadEvent } from "./uploads.ts";

const none: Caps = { host: Infinity, rack: Infinity, wan: Infinity };
const ask = (peer: string, more: Partial<Extract<UploadEvent<string>, { kind: "subscribe" }>> = {}) =>
  ({
    kind: "subscribe",
    peer,
    id: 1,
    content: "c",
    stripe: 0,
    from: 0,
    to: 4,
    priority: priorities.release,
    distance: "rack",
    ...more,
  }) as const;

/** A machine with all units of one stripe, and what it sends: `peer:unit`, or the time to wake. */
function machine(caps: Caps, units = 64) {
  const have = new Have({ units, stripes: 16 });
  for (let unit = 0; unit < units; unit += 1) have.add(unit);
  const uploads = new Uploads<string>(caps, 0);
  uploads.step({ kind: "serve", content: "c", have, unitBytes: 1_000 }, 0, []);
  const step = (event: UploadEvent<string>, nowMs = 0): UploadEffect<string>[] => {
    const effects: UploadEffect<string>[] = [];
    uploads.step(event, nowMs, effects);
    return effects;
  };
  return { uploads, step };
}
const said = (effects: readonly UploadEffect<string>[]): readonly string[] =>
  effects.map((effect) =>
    effect.kind === "send"
      ? `${effect.flow.peer}:${effect.unit}`
      : effect.kind === "wake"
        ? `at ${effect.atMs}`
        : effect.kind === "refused"
          ? effect.why
          : `waiting ${effect.isWaiting}`,
  );

describe("uploads", () => {
  test("UP3: a flow has two units on its way, and goes on when one has left", () => {
    const { step } = machine(none);
    const sent = step(ask("a"));
    deepEqual(said(sent), ["a:0", "a:16"]);
    const [first] = sent;
    deepEqual(said(first?.kind === "send" ? step({ kind: "drained", flow: first.flow }) : []), ["a:32"]);
  });

  test("the host's limit lets one unit through at a time, and flows take turns", () => {
    const { step } = machine({ ...none, host: 10_000 });
    deepEqual(said(step(ask("a"))), ["a:0", "at 100"]);
    deepEqual(said(step(ask("b"))), []);
    deepEqual(said(step({ kind: "wake" }, 100)), ["a:16", "at 200"]);
    deepEqual(said(step({ kind: "wake" }, 200)), ["b:0", "at 300"]);
  });

  test("UP2: a rollback goes before a release", () => {
    const { step } = machine({ ...none, host: 10_000 });
    step(ask("a"));
    step(ask("b", { priority: priorities.rollback }));
    deepEqual(said(step({ kind: "wake" }, 100)), ["b:0", "at 200"]);
    deepEqual(said(step({ kind: "wake" }, 200)), ["b:16", "at 300"]);
    deepEqual(said(step({ kind: "wake" }, 300)), ["a:16"], "b's window is full");
  });

  test("what leaves the rack or the region has limits of its own, and holds up no one else", () => {
    const { step } = machine({ host: Infinity, rack: 10_000, wan: 1_000 });
    deepEqual(said(step(ask("far", { distance: "world" }))), ["far:0", "at 1000"]);
    deepEqual(said(step(ask("other", { distance: "region" }))), ["at 100"]);
    deepEqual(said(step(ask("near"))), ["near:0", "near:16"]);
    deepEqual(said(step({ kind: "wake" }, 100)), ["at 1000", "other:0", "at 200"]);
  });

  test("limits change while it runs: nothing goes at zero, and all at once without one", () => {
    const { step } = machine({ ...none, host: 0 });
    deepEqual(said(step(ask("a"))), []);
    deepEqual(said(step({ kind: "caps", caps: none }, 50)), ["a:0", "a:16"]);
  });

  test("UP1: a unit that is not here is waited for, which is what a query says", () => {
    const have = new Have(shapeOf(32));
    const uploads = new Uploads<string>(none, 0);
    const step = (event: UploadEvent<string>) => {
      const effects: UploadEffect<string>[] = [];
      uploads.step(event, 0, effects);
      return said(effects);
    };
    step({ kind: "serve", content: "c", have, unitBytes: 1 });
    deepEqual(step(ask("a", { to: 2 })), []);
    deepEqual(step({ kind: "query", peer: "a", id: 1 }), ["waiting true"]);
    have.add(0);
    deepEqual(step({ kind: "arrived", content: "c", unit: 0 }), ["a:0"]);
  });

  const bad: readonly [string, ReturnType<typeof ask>, RegExp][] = [
    ["an unknown content", ask("a", { content: "x" }), /not served/],
    ["a stripe that is not there", ask("a", { stripe: 16 }), /no stripe 16/],
    ["positions outside", ask("a", { from: 2, to: 99 }), /outside/],
    ["an empty range", ask("a", { from: 2, to: 2 }), /outside/],
  ];
  for (const [name, asked, why] of bad)
    test(`UP4: ${name} is refused`, () => match(said(machine(none).step(asked)).join(), why));

  test("UP4: a peer has a bounded number of flows, and gives them back when it leaves", () => {
    const { uploads, step } = machine(none);
    for (let id = 0; id < 64; id += 1) step(ask("a", { id }));
    match(said(step(ask("a", { id: 64 }))).join(), /as many as one peer may have/);
    step({ kind: "left", peer: "a" });
    equal(uploads.flows, 0);
  });
});
