import { deepEqual, equal, ok } from "node:assert/strict";
import { entryValueCharactersMax, type NewEntry } from "#base/entries.ts";
import { faults, scene, type MakeStore } from "./support.ts";

const name = { space: "answer", key: "k" };
const entry = (more: Partial<NewEntry> = {}): NewEntry => ({
  ...name,
  owner: "ada",
  value: "one",
  forMs: 10_000,
  ownerMax: 100,
  ...more,
});

export function exerciseEntries(makeStore: MakeStore): void {
  scene(makeStore, "EN1 of two nodes that add under one name, one succeeds and the other gets its value", async (s) => {
    const [one, two] = [s.journal.entries, (await s.node()).entries];
    const values = Array.from({ length: 10 }, (_, i) => `value ${i}`);
    const added = await Promise.all(
      values.map((value, i) => (i % 2 === 0 ? one : two).add(entry({ value })).then((was) => ({ value, was }))),
    );
    const winners = added.filter(({ was }) => was.added);
    equal(winners.length, 1);
    for (const { was } of added) if (!was.added) equal(was.value, winners[0]?.value);
    equal((await two.read(name))?.value, winners[0]?.value);
    deepEqual(await two.add(entry({ space: "other" })), { added: true }, "another space is another name");
  });

  scene(makeStore, "EN2 an entry is replaced or removed only while it has the value that was seen", async (s) => {
    const [one, two] = [s.journal.entries, (await s.node()).entries];
    equal(await one.replace(name, "one", { value: "two", forMs: 1_000 }), false, "there is none");
    await one.add(entry());
    equal(await two.replace(name, "wrong", { value: "two", forMs: 1_000 }), false);
    equal(await two.replace(name, "one", { value: "two", forMs: 60_000 }), true);
    ok(((await one.read(name))?.remainingMs ?? 0) > 50_000, "its time begins anew");
    equal(await one.remove(name, "one"), false);
    const taken = await Promise.all([one, two, one, two].map((entries) => entries.remove(name, "two")));
    deepEqual(taken.filter(Boolean), [true], "one of several takes it");
    equal(await one.read(name), undefined);
    deepEqual(await one.add(entry()), { added: true });
  });

  scene(makeStore, "EN3 an entry ends with its time, and its name is free again", async ({ journal, advance }) => {
    const { entries } = journal;
    await entries.add(entry());
    advance(9_000);
    deepEqual(await entries.add(entry({ value: "two" })), { added: false, value: "one" });
    advance(1_100);
    equal(await entries.read(name), undefined);
    equal(await entries.replace(name, "one", { value: "two", forMs: 1 }), false);
    equal(await entries.remove(name, "one"), false);
    deepEqual(await entries.add(entry({ value: "two" })), { added: true });
    equal((await entries.read(name))?.value, "two");
  });

  scene(makeStore, "EN3 an owner's oldest entries make way for its new ones, others' stay", async ({ journal }) => {
    const { entries } = journal;
    await entries.add(entry({ key: "theirs", owner: "eve" }));
    for (let n = 0; n < 6; n += 1) await entries.add(entry({ key: `k${n}`, ownerMax: 4 }));
    const found = await Promise.all(
      ["theirs", "k0", "k1", "k2", "k3", "k4", "k5"].map((key) => entries.read({ ...name, key })),
    );
    deepEqual(
      found.map((one) => one !== undefined),
      [true, false, false, true, true, true, true],
    );
  });

  scene(makeStore, "an entry's value is bounded, and comes back as it was given", async ({ journal }) => {
    const { entries } = journal;
    await faults(entries.add(entry({ value: "x".repeat(entryValueCharactersMax + 1) })), "invalid");
    const value = JSON.stringify({ text: "\u0000 \ud800 ü 漢 '\"\\" });
    await entries.add(entry({ value }));
    equal((await entries.read(name))?.value, value);
  });
}
