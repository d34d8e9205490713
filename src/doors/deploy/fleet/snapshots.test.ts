/** What a node writes down of its machines, and what it knows after a restart. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { createKey, signerOf } from "#doors/deploy/signing/signing.ts";
import { until } from "#testing/until.ts";
import { FleetDesk } from "./desk.ts";
import { GoalStore } from "./goals.ts";
import { cellMachinesMax, Snapshots } from "./snapshots.ts";

test("SN1: cells are small, and a node that was restarted knows whom it should hear from", async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-cells-"));
  try {
    const clock = new ManualClock(Date.UTC(2026, 10, 1));
    const store = createMemoryStore({ clock, sizeBytesMax: 10_000_000 });
    const signer = async () => signerOf(createKey().privatePem);
    const open = () => {
      const goals = new GoalStore({ index: createMemoryIndex(), store, signer, clock });
      const desk = new FleetDesk(goals, { listsAfter: async () => [] }, clock);
      const warned: string[] = [];
      const snapshots = new Snapshots({ node: "n1", desk, folder, store, clock, warn: (why) => void warned.push(why) });
      return { desk, snapshots, warned };
    };
    const before = open();
    const machines = cellMachinesMax + 200;
    for (let i = 0; i < machines; i += 1)
      before.desk.report(
        { tenant: "acme", machine: `m${i}`, region: "eu", labels: [] },
        { machine: `m${i}`, service: "web", goalVersion: 1, state: "healthy", running: "one" },
      );
    const cells = await before.snapshots.write({ tenant: "acme", regions: ["eu", "us"] });
    deepEqual(
      cells.map(({ cell, machines: count }) => [cell, count]),
      [
        ["n1-0", cellMachinesMax],
        ["n1-1", 200],
      ],
    );
    const stop = new AbortController();
    const running = before.snapshots.run(stop.signal);
    const isWritten = (): boolean => existsSync(join(folder, "cells.json"));
    await until("it asks for its own cells", () => clock.pending > 0);
    await clock.advance(5 * 60_000);
    await until("the cells are written", isWritten);
    stop.abort();
    await running;
    const after = open();
    const again = new AbortController();
    const recalling = after.snapshots.run(again.signal);
    await until("the cells are read", () => after.desk.known().length > 0);
    again.abort();
    await recalling;
    deepEqual([before.warned, after.warned], [[], []]);
    const known = after.desk.known();
    equal(known.length, machines);
    ok(known.every(({ isHeld, reports }) => !isHeld && reports[0]?.running === "one"));
    await clock.advance(10 * 60_000);
    equal(after.desk.known().length, 0, "and forgets those that stay away");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
