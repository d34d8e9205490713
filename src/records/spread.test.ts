import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault } from "#base/fault.ts";
import { memoryRecords } from "./memory.ts";
import type { RecordStore } from "./records.ts";
import { recordsSpread } from "./spread.ts";
import { exerciseRecords, playAsTest } from "./testing/exercise.ts";

describe("records over three databases", () => {
  exerciseRecords(
    playAsTest(async () => {
      let nowMs = 1_700_000_000_000;
      const databases = [1, 2, 3].map(() => memoryRecords(() => nowMs));
      return {
        one: recordsSpread(databases),
        two: recordsSpread(databases),
        advance: (ms) => void (nowMs += ms),
        close: async () => undefined,
      };
    }),
  );

  test("a database that is away takes only its tenants' records with it, and lists of all tenants", async () => {
    const away = async (): Promise<never> => {
      throw new Fault("unavailable", "ask", {});
    };
    const lost: RecordStore = { ...memoryRecords(() => 1), create: away, read: away, list: away, newest: away };
    const spread = recordsSpread([memoryRecords(() => 1), lost]);
    const tenants = Array.from({ length: 40 }, (_, n) => `tenant-${n}`);
    const outcomes = await Promise.allSettled(
      tenants.map((tenant) => spread.create({ tenant, kind: "test", name: "a" }, "x")),
    );
    const there = outcomes.filter(({ status }) => status === "fulfilled").length;
    equal(there > 5 && there < 35, true, `${there} of 40`);
    await rejects(spread.list({ kind: "test", limit: 10 }), /unavailable/);
  });

  test("where a tenant's records lie never changes", async () => {
    const databases = [1, 2, 3].map(() => memoryRecords(() => 1));
    const spread = recordsSpread(databases);
    for (const tenant of ["acme", "globex", "default", "*", "ü"])
      await spread.create({ tenant, kind: "test", name: "a" }, "x");
    const places = await Promise.all(databases.map((database) => database.newest("test")));
    deepEqual(
      places.map((rows) => rows.map(({ tenant }) => tenant)),
      [["globex", "default", "*"], ["acme"], ["ü"]],
    );
  });
});
