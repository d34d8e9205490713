import { deepEqual, match, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { cadenceOf } from "./cron.ts";
import { dueAt, type CatchUp } from "./due.ts";

function instants(cron: string, zone: string, from: string, count: number): readonly string[] {
  const cadence = cadenceOf(cron, zone);
  const found: string[] = [];
  for (let at = cadence.after(Date.parse(from)); at !== undefined && found.length < count; at = cadence.after(at))
    found.push(new Date(at).toISOString().slice(0, 16));
  return found;
}

// What a cron line means in a zone: the instants after a time, in UTC.
const cases: readonly (readonly [what: string, cron: string, zone: string, from: string, found: readonly string[]])[] =
  [
    ["every quarter", "*/15 * * * *", "UTC", "2026-01-01T00:00Z", ["2026-01-01T00:15", "2026-01-01T00:30"]],
    ["working days", "30 6 * * mon-fri", "UTC", "2026-01-02T07:00Z", ["2026-01-05T06:30", "2026-01-06T06:30"]],
    ["Sunday is 0 and 7", "0 0 * * 7", "UTC", "2026-01-01T00:00Z", ["2026-01-04T00:00", "2026-01-11T00:00"]],
    ["both days: either", "0 0 13 * 5", "UTC", "2026-01-08T00:00Z", ["2026-01-09T00:00", "2026-01-13T00:00"]],
    ["leap days", "0 0 29 2 *", "UTC", "2026-01-01T00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00"]],
    ["half an hour off", "0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00Z", ["2026-01-01T03:30", "2026-01-02T03:30"]],
    ["a gap: at its end", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]],
    [
      "a gap, every half hour",
      "*/30 * * * *",
      "Europe/Berlin",
      "2026-03-29T00:10Z",
      ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"],
    ],
    ["an overlap: once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]],
    [
      "an overlap, every hour",
      "0 * * * *",
      "Europe/Berlin",
      "2026-10-24T23:10Z",
      ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"],
    ],
    ["a gap of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", ["2026-10-03T15:30"]],
    ["a gap in New York", "30 2 * * *", "America/New_York", "2026-03-08T00:00Z", ["2026-03-08T07:00"]],
    ["an overlap in New York", "30 1 * * *", "America/New_York", "2026-11-01T04:00Z", ["2026-11-01T05:30"]],
  ];

describe("a cron line", () => {
  for (const [what, cron, zone, from, found] of cases)
    test(`${cron} in ${zone}: ${what}`, () => deepEqual(instants(cron, zone, from, found.length), found));

  const refused = ["@daily", "0 0 L * *", "0 0 * * 5#2", "0 0 15W * *", "0 0 * * * *", "0 0 * *", "61 * * * *", ""];
  for (const cron of [...refused, "0 0 30 2 *", "0 0 ? * *", "* * * * 8", "H * * * *"])
    test(`${JSON.stringify(cron)} is refused`, () =>
      throws(
        () => cadenceOf(cron, "UTC"),
        (error: Error) => (match(error.message, /^read a schedule: invalid/), true),
      ));

  test("an unknown zone is refused", () => throws(() => cadenceOf("0 0 * * *", "Mars/Olympus"), /invalid/));
});

const minute = 60_000;
const start = Date.parse("2026-01-01T00:00:00Z");
const due = (catchUp: CatchUp, lateMinutes: number) => {
  const nowMs = start + lateMinutes * minute;
  const { fire, through, skipped } = dueAt(cadenceOf("*/10 * * * *", "UTC"), { settledMs: start, nowMs, catchUp });
  return { fire: fire.map((at) => (at - start) / minute), through: (through - start) / minute, skipped };
};

describe("what is due", () => {
  const table: readonly (readonly [CatchUp, number, ReturnType<typeof due>])[] = [
    ["skip", 9, { fire: [], through: 0, skipped: 0 }],
    ["skip", 10, { fire: [10], through: 10, skipped: 0 }],
    ["skip", 11, { fire: [10], through: 10, skipped: 0 }],
    ["skip", 12, { fire: [], through: 10, skipped: 1 }],
    ["skip", 35, { fire: [], through: 30, skipped: 3 }],
    ["skip", 30, { fire: [30], through: 30, skipped: 2 }],
    ["once", 35, { fire: [30], through: 30, skipped: 2 }],
    ["once", 30, { fire: [30], through: 30, skipped: 2 }],
    ["all", 35, { fire: [10, 20, 30], through: 30, skipped: 0 }],
  ];
  for (const [catchUp, late, expected] of table)
    test(`${catchUp}, ${late} minutes later`, () => deepEqual(due(catchUp, late), expected));

  test("of very many missed ones the newest hundred are made up for", () => {
    const { fire, through, skipped } = due("all", 100_005);
    deepEqual([fire.length, fire.at(-1), through, skipped > 0], [100, 100_000, 100_000, true]);
  });
});
