// The action index in PostgreSQL with a synchronous standby that does not confirm commits (K7).
import { deepEqual, equal, fail } from "node:assert/strict";
import { after, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import type { NewEntry } from "#blobs/action-index.ts";
import { startPostgresPair, type PostgresPair } from "#testing/postgres-pair.ts";
import { openPostgresIndex, type PostgresIndex } from "./postgres-index.ts";

const postgres = await startPostgresPair();
if (postgres.skip) console.error(`names and a synchronous standby are NOT tested: ${postgres.skip}`);
after(() => postgres.stop());

const key = (name: string) => ({ tenant: "t", space: "ac", name });
const entry = (digest: string): NewEntry => ({ digest, principal: "p", atMs: 1 });

async function withIndex(play: (index: PostgresIndex, pair: PostgresPair) => Promise<void>): Promise<void> {
  const pair = postgres.pair();
  const index = await openPostgresIndex({ url: await pair.freshDatabase() });
  try {
    await play(index, pair);
  } finally {
    pair.thaw();
    await index[Symbol.asyncDispose]();
  }
}

describe("names in PostgreSQL, with a synchronous standby", { skip: postgres.skip }, () => {
  for (const how of ["pg_cancel_backend", "pg_terminate_backend"] as const)
    test(`a name whose commit ended by ${how} is not acknowledged until the standby has it`, () =>
      withIndex(async (index, pair) => {
        await index.put(key("before"), entry("b"));
        await pair.freeze();
        const put = index.put(key("n"), entry("d"), 0).then(
          (written) => fail(`acknowledged: ${JSON.stringify(written)}`),
          (error: unknown) => error,
        );
        await pair.interrupt(how);
        equal(isFault(await put, "unknown-outcome"), true, String(await put));

        // A retry succeeds only once the standby has the row.
        let told = false;
        const again = index.put(key("n"), entry("d"), 0).finally(() => (told = true));
        await pair.waiting();
        equal(told, false);
        pair.thaw();
        const { kind, current } = (await again) as { kind: string; current: { digest: string } };
        deepEqual([kind, current.digest], ["conflict", "d"]);
      }));

  test("the removal of a name is confirmed only once the standby has it", () =>
    withIndex(async (index, pair) => {
      await index.put(key("n"), entry("d"));
      await pair.freeze();
      const removal = index.remove(key("n")).catch((error: unknown) => error);
      await pair.interrupt("pg_cancel_backend");
      equal(isFault(await removal, "unknown-outcome"), true, String(await removal));
      let told = false;
      const again = index.remove(key("n")).finally(() => (told = true));
      await pair.waiting();
      equal(told, false);
      pair.thaw();
      equal(await again, false);
    }));
});
