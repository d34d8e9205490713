import { equal } from "node:assert/strict";
import { test } from "node:test";
import { ControlFile, numberOf } from "./control-file.ts";

test("a number is found by its whole name, at the beginning of a line", () => {
  const text = "oom_kill_disable 1\nunder_oom 2\noom_kill 34\n";
  equal(numberOf("oom_kill ", text), 34);
  equal(numberOf("oom_kill_disable ", text), 1);
  equal(numberOf("oom ", text), 0);
  equal(numberOf("write_bytes: ", "cancelled_write_bytes: 5\n"), 0);
  equal(numberOf("write_bytes: ", "write_bytes: \n"), 0);
  equal(numberOf("oom_kill ", ""), 0);
});

test("a file that does not exist reads as empty", () => {
  using file = new ControlFile("/nowhere/at/all", "r+");
  file.write("1");
  equal(file.read(), "");
  equal(file.isThere, false);
});
