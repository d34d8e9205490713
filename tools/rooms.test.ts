import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { kindTable } from "#app/door-kinds.ts";
import { staleFiles } from "./generate.ts";
import { doors, mayImport, isPure, roomNames, roomOf } from "./rooms.ts";
import { importsOf, ourFiles, read, targetOf } from "./source-files.ts";

describe("the table of rooms", () => {
  test("has no door whose name callers may use for their own kinds", () => {
    for (const door of doors) ok(!kindTable.isFree(door), `${door} is not among the names kept for doors`);
  });

  test("matches the design", () => {
    ok(mayImport("shard", "kernel") && !mayImport("kernel", "shard"));
    ok(mayImport("doors/ci", "worker") && !mayImport("doors/ci", "doors/build"));
    ok(mayImport("app", "doors/shell") && !mayImport("app", "sim") && !mayImport("app", "cli"));
    deepEqual(
      roomNames.filter((room) => mayImport(room, "sim")),
      ["sim"],
    );
  });

  test("has no cycle: no two rooms may import each other", () => {
    const both = roomNames.flatMap((one) =>
      roomNames.filter((two) => one < two && mayImport(one, two) && mayImport(two, one)).map((two) => [one, two]),
    );
    deepEqual(both, []);
  });

  test("the lint rules and the picture are derived from it (if not: npm run generate)", () => {
    deepEqual(
      staleFiles().map(({ path }) => path),
      [],
    );
  });
});

describe("every file below src", () => {
  const files = ourFiles("src/**/*.{ts,tsx}");

  test("is in a room", () => {
    deepEqual(
      files.filter((file) => roomOf(file.slice("src/".length)) === undefined),
      [],
    );
  });

  test("imports only what its room may", () => {
    deepEqual(
      files.flatMap((file) => importsOf(read(file)).flatMap((specifier) => complaint(file, specifier))),
      [],
    );
  });
});

test("imports of every form are recognised", () => {
  const source = `import { a } from "#base/a.ts";
import type {
  B,
} from "./b.ts";
import "./c.ts";
export * from "./d.ts";
const e = await import("./e.ts");
new Worker(new URL("./f.ts", import.meta.url));
`;
  deepEqual(
    new Set(importsOf(source).map((specifier) => targetOf("src/kernel/x.ts", specifier))),
    new Set([
      "src/base/a.ts",
      "src/kernel/b.ts",
      "src/kernel/c.ts",
      "src/kernel/d.ts",
      "src/kernel/e.ts",
      "src/kernel/f.ts",
    ]),
  );
  equal(targetOf("src/kernel/x.ts", "node:fs"), undefined);
});

function complaint(file: string, specifier: string): readonly string[] {
  const room = roomOf(file.slice("src/".length)) ?? "";
  const isTest = file.endsWith(".test.ts") || file.includes("/testing/") || room === "sim";
  if (specifier.startsWith("../")) return [`${file}: ${specifier} climbs; write #room/x.ts`];
  if (specifier.startsWith("node:") && isPure(room) && !isTest) return [`${file}: ${room} is pure, no ${specifier}`];
  if (/^#testing\/|\/testing\//.test(specifier) && !isTest) return [`${file}: only tests may import ${specifier}`];
  if (specifier.startsWith("#testing/")) return [];
  if (!specifier.startsWith("#")) return [];
  const target = roomOf(specifier.slice(1));
  if (target === undefined) return [`${file}: ${specifier} is in no room`];
  return mayImport(room, target) ? [] : [`${file}: ${room} may not import ${specifier}`];
}
