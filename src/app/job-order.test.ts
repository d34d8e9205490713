import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { planJob } from "./job-order.ts";

const wishes = { tenant: "t", unique: "u" };
const stages = [{ name: "run", run: ["echo", "hello"] }];

test("a command line, a file's text and its parsed value become the same work", () => {
  const order = planJob({ command: ["echo", "hello"] }, { ...wishes, name: "j" });
  equal(order.name, "j");
  equal(order.shardKey, "t/u");
  deepEqual(planJob({ document: JSON.stringify({ stages }) }, { ...wishes, name: "j" }), order);
  deepEqual(planJob({ document: { stages } }, { ...wishes, name: "j" }, "shell"), order);
});

test("what cannot be planned is refused with its place, and so is a door that takes no documents", () => {
  throws(() => planJob({ document: "stages:\n  - name: a\n    rum: x\n" }, wishes), /stages\.0\.rum \(line 3\)/);
  throws(() => planJob({ document: {} }, wishes, "build"), /takes no documents of jobs; these do: shell/);
});
