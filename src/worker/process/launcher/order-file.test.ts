import { equal } from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { OrderFile } from "./order-file.ts";
import { rigHome, text } from "#worker/process/testing/rig.ts";

test("a shell reads exactly the new order, whatever was there before", () => {
  const home = rigHome();
  try {
    const path = join(home, "order");
    using file = new OrderFile(path, undefined);
    for (const order of [`echo '${"ä".repeat(5_000)}'\n`, "a\nb\n", "exec c", "", "x".repeat(4_096)]) {
      file.write(order);
      equal(text(path).replace(/\n+$/, ""), order.replace(/\n+$/, ""));
    }
  } finally {
    rmSync(home, { recursive: true });
  }
});
