import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { fieldLines, tableLines } from "./table.ts";

test("columns are as wide as their widest value, and lines do not end in spaces", () => {
  deepEqual(
    tableLines(
      ["JOB", "NAME"],
      [
        ["j0-1", "a"],
        ["j0-100", ""],
      ],
    ),
    ["JOB     NAME", "j0-1    a", "j0-100"],
  );
});

test("numbers stand to the right, long values are cut", () => {
  deepEqual(
    tableLines(
      [{ name: "n", isNumber: true }, "text"],
      [
        [1, "abcdefgh"],
        [22, ""],
      ],
      { widthMax: 5, hasRule: true },
    ),
    [" n  text", "--  -----", " 1  abcd…", "22"],
  );
});

test("a name cannot send commands to the terminal", () => {
  deepEqual(tableLines(["NAME"], [["\u001b[2Jred\n"]]), ["NAME", "?[2Jred?"]);
});

test("fields have no headings", () => {
  deepEqual(
    fieldLines([
      ["used", "1 KiB"],
      ["reserved", 3],
    ]),
    ["used      1 KiB", "reserved  3"],
  );
});

test("many rows", () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [i]);
  deepEqual(tableLines(["N"], rows).length, 200_001);
});
