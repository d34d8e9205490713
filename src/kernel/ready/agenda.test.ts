import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Agenda, type AgendaItem } from "./agenda.ts";

type Item = AgendaItem & { readonly name: number; dueAtMs: number };

const all = (agenda: Agenda<Item>, nowMs: number): Item[] => {
  const items: Item[] = [];
  for (let item = agenda.take(nowMs); item; item = agenda.take(nowMs)) items.push(item);
  return items;
};

describe("the agenda", () => {
  test("returns what is due, earliest first, each once", () => {
    const agenda = new Agenda<Item>();
    const item = (name: number): Item => ({ name, dueAtMs: name, agendaAt: -1, agendaSlot: 0 });
    for (const at of [900, 300, 600]) agenda.file(item(at), at, 0);
    equal(agenda.nextAtMs(), 300);
    deepEqual(
      all(agenda, 600).map(({ name }) => name),
      [300, 600],
    );
    equal(agenda.nextAtMs(), 900);
    deepEqual(
      all(agenda, 10_000).map(({ name }) => name),
      [900],
    );
    equal(agenda.nextAtMs(), Number.POSITIVE_INFINITY);
  });

  test("moves what is filed earlier, leaves what is filed later, forgets what is dropped", () => {
    const agenda = new Agenda<Item>();
    const item: Item = { name: 1, dueAtMs: 0, agendaAt: -1, agendaSlot: 0 };
    agenda.file(item, 5_000, 0);
    agenda.file(item, 9_000, 0);
    equal(agenda.filedAtMs(item), 5_000);
    agenda.file(item, 2_000, 0);
    equal(agenda.filedAtMs(item), 2_000);
    agenda.drop(item);
    agenda.drop(item);
    equal(agenda.filedAtMs(item), Number.POSITIVE_INFINITY);
    equal(agenda.take(1e9), undefined);
  });

  test("things that were due before anything was filed are returned at once", () => {
    const agenda = new Agenda<Item>();
    agenda.file({ name: 1, dueAtMs: 5, agendaAt: -1, agendaSlot: 0 }, 5, 1_000_000);
    equal(agenda.take(1_000_000)?.name, 1);
  });

  test("nothing is returned too late: at most one fine bucket after its time", () => {
    const moves = fc.array(
      fc.record({
        do: fc.constantFrom("file", "file", "file", "drop", "pass"),
        at: fc.nat(20),
        ms: fc.oneof(fc.nat(2_000), fc.nat(200_000), fc.nat(10_000_000)),
      }),
      { maxLength: 150 },
    );
    fc.assert(
      fc.property(moves, (given) => {
        const agenda = new Agenda<Item>();
        const items: Item[] = Array.from({ length: 21 }, (_, name) => ({
          name,
          dueAtMs: -1,
          agendaAt: -1,
          agendaSlot: 0,
        }));
        let nowMs = 1_234_567;
        for (const { do: move, at, ms } of given) {
          const item = items[at] as Item;
          if (move === "drop") {
            agenda.drop(item);
            item.dueAtMs = -1;
          } else if (move === "file") {
            // The agenda must return it by the earliest time that it was ever filed for.
            item.dueAtMs = item.dueAtMs === -1 ? nowMs + ms : Math.min(item.dueAtMs, nowMs + ms);
            agenda.file(item, nowMs + ms, nowMs);
          } else {
            nowMs += ms;
            for (const one of all(agenda, nowMs)) {
              ok(one.dueAtMs !== -1, "what was dropped does not come up");
              // Returned too early, it is filed again, as every user of the agenda does.
              if (one.dueAtMs > nowMs) agenda.file(one, one.dueAtMs, nowMs);
              else one.dueAtMs = -1;
            }
            for (const one of items)
              ok(one.dueAtMs === -1 || one.dueAtMs > nowMs - 100, `item ${one.name} was due at ${one.dueAtMs}`);
            ok(agenda.nextAtMs() > nowMs, "what is due has been taken");
          }
          for (const one of items) if (one.dueAtMs !== -1) ok(agenda.nextAtMs() < one.dueAtMs + 100);
        }
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});
