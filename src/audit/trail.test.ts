import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { ChainCheck, type AuditEntry, type AuditFacts } from "./chain.ts";
import { AuditTrail } from "./trail.ts";

const facts = (call: string): AuditFacts => ({
  at: "2026-01-01T00:00:00.000Z",
  who: { name: "ada", tenant: "acme", proof: "token", address: "127.0.0.1" },
  action: "work.cancel",
  call,
  of: { job: "j0-1" },
  outcome: "asked",
});

function rig(keptMax?: number) {
  const clock = new ManualClock();
  const store = memoryRecords(() => clock.wallMs());
  const node = (): AuditTrail => new AuditTrail(watchedRecords(store, clock), keptMax);
  return { node };
}

async function all(trail: AuditTrail, tenant = "acme"): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  for await (const entry of trail.export(tenant)) found.push(entry);
  return found;
}

const verdictOf = (entries: readonly AuditEntry[]) => {
  const check = new ChainCheck();
  for (const entry of entries) {
    const wrong = check.add(entry);
    if (wrong) return wrong;
  }
  return check.verdict();
};

describe("an audit trail", () => {
  test("AU1 AU2 is one chain per tenant, whichever nodes write it, also at once", async () => {
    const { node } = rig();
    const [one, two] = [node(), node()];
    await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : two).append("acme", facts(`c${n}`))));
    await one.append("globex", facts("theirs"));
    const entries = await all(two);
    deepEqual(
      entries.map(({ seq }) => seq),
      Array.from({ length: 40 }, (_, n) => n + 1),
    );
    equal(new Set(entries.map(({ call }) => call)).size, 40);
    const verdict = verdictOf(entries);
    ok(verdict.ok);
    deepEqual([verdict.entries, verdict.first, verdict.last], [40, 1, 40]);
    equal((await all(one, "globex")).length, 1);
    deepEqual(
      (await two.list("acme", 2)).entries.map(({ seq }) => seq),
      [40, 39],
    );
  });

  test("AU2 what is changed, left out, put in or moved is found", async () => {
    const trail = rig().node();
    for (let n = 0; n < 6; n += 1) await trail.append("acme", facts(`c${n}`));
    const entries = await all(trail);
    const [, second, third] = entries;
    ok(second && third);
    const forged: Readonly<Record<string, readonly AuditEntry[]>> = {
      changed: entries.map((entry) => (entry.seq === 3 ? { ...entry, call: "forged" } : entry)),
      "another caller": entries.map((entry) =>
        entry.seq === 3 ? { ...entry, who: { ...entry.who, name: "eve" } } : entry,
      ),
      missing: entries.filter(({ seq }) => seq !== 3),
      twice: [...entries.slice(0, 3), third, ...entries.slice(3)],
      moved: [...entries.slice(0, 1), third, second, ...entries.slice(3)],
    };
    for (const [what, list] of Object.entries(forged)) equal(verdictOf(list).ok, false, what);
    ok(verdictOf(entries.slice(2)).ok, "the oldest may be gone");
  });

  test("AU3 keeps the newest entries, and its chain goes on", async () => {
    const trail = rig(150).node();
    for (let n = 0; n < 420; n += 1) await trail.append("acme", facts(`c${n}`));
    const entries = await all(trail);
    ok(entries.length >= 150 && entries.length <= 260, String(entries.length));
    const verdict = verdictOf(entries);
    ok(verdict.ok && verdict.last === 420);
  });
});
