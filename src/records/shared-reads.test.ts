import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { memoryRecords } from "./memory.ts";
import { sharedReads } from "./shared-reads.ts";

const id = { tenant: "acme", kind: "test", name: "web" };

test("of many who read the same at once, few ask; none sees what was before its question", async () => {
  const store = memoryRecords(() => 0);
  let reads = 0;
  const gate = Promise.withResolvers<void>();
  const slow = {
    ...store,
    read: async (of: typeof id) => {
      reads += 1;
      const found = await store.read(of);
      await gate.promise;
      return found;
    },
  };
  const records = sharedReads(slow);
  const early = records.read(id);
  const { record } = await records.create(id, "document");
  const late = Array.from({ length: 100 }, () => records.read(id));
  const other = records.read({ ...id, name: "api" });
  gate.resolve();
  equal(await early, undefined);
  for (const found of await Promise.all(late)) deepEqual(found, record);
  equal(await other, undefined);
  equal(reads, 3);
});
