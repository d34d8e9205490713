import { deepEqual, notEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import { forgeIds } from "./forge-ids.ts";

test("CI-37: each repository, owner and actor of each tenant has an id of its own, always the same", () => {
  const run = { tenant: "mill", repository: "octo/demo", actor: "ann" };
  const ids = forgeIds(run);
  for (const id of Object.values(ids)) ok(Number.isSafeInteger(id) && id > 0);
  deepEqual(forgeIds({ ...run, repository: "Octo/Demo" }), ids);
  notEqual(forgeIds({ ...run, tenant: "other" }).repository, ids.repository);
  notEqual(forgeIds({ ...run, repository: "octo/other" }).repository, ids.repository);
  notEqual(forgeIds({ ...run, actor: "bob" }).actor, ids.actor);
});
