/** The action index in a real PostgreSQL. */
import { rejects } from "node:assert/strict";
import { after, test } from "node:test";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { isFault } from "#base/fault.ts";
import { exerciseIndex } from "#blobs/testing/index.ts";
import { openPostgresIndex } from "./postgres-index.ts";

const postgres = await sharedPostgres();
if (postgres.skip) console.error(`the index in PostgreSQL is NOT tested: ${postgres.skip}`);
after(() => postgres.stop());

if (!postgres.skip) {
  let made = 0;
  exerciseIndex("the index in PostgreSQL", async () => {
    const options = { url: postgres.server().url(), schema: `names_${(made += 1)}`, connectionsMax: 2 };
    const open = async () => {
      const index = await openPostgresIndex(options);
      return { index, dispose: () => index[Symbol.asyncDispose]() };
    };
    return { ...(await open()), reopened: open };
  });
}

test("nodes that start together prepare the table together", { skip: postgres.skip }, async () => {
  const options = { url: postgres.server().url(), schema: "together", connectionsMax: 1 };
  const opened = await Promise.all(Array.from({ length: 5 }, () => openPostgresIndex(options)));
  await Promise.all(opened.map((index) => index[Symbol.asyncDispose]()));
});

test("a server that is not there is unavailable", async () => {
  const opening = openPostgresIndex({ url: "postgres://nobody@127.0.0.1:1/none", timeoutMs: 500 });
  await rejects(opening, (e) => isFault(e, "unavailable"));
});
