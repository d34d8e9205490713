import { equal } from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./nearest.ts";

test("a typing mistake is recognised, a different word is not", () => {
  const words = ["submit", "list", "show", "watch", "cancel"];
  equal(nearest("sumbit", words), "submit");
  equal(nearest("lits", words), "list");
  equal(nearest("cancle", words), "cancel");
  equal(nearest("frobnicate", words), undefined);
  equal(nearest("x", []), undefined);
});
