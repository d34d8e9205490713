/** A slice of `npm run store:damage`. */
import { deepEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import { makeTemplate, tryCell, type Cell } from "./damage-matrix.ts";

const slice: readonly (Omit<Cell, "file"> & { readonly part: string; readonly isLost: boolean })[] = [
  { part: "blobs/files", way: "flipped", when: "stopped", isLost: true },
  { part: "blobs/files", way: "truncated", when: "serving", isLost: true },
  { part: "blobs/log", way: "flipped", when: "stopped", isLost: true },
  { part: "blobs/log", way: "removed", when: "serving", isLost: true },
  { part: "blobs/log", way: "truncated", when: "serving", isLost: true },
  { part: "blobs/streams", way: "flipped", when: "stopped", isLost: false },
  { part: "vault.keys", way: "removed", when: "stopped", isLost: false },
  { part: "node-name", way: "removed", when: "stopped", isLost: false },
];

test("damaged files of a node: no wrong byte, and healed by an upload", { timeout: 60_000 }, async () => {
  using template = await makeTemplate();
  for (const { part, isLost, ...cell } of slice) {
    const file = template.files.find((one) => one.includes(part));
    ok(file !== undefined, `a file of ${part}`);
    const { lost, problems, refused } = await tryCell(template, { file, ...cell });
    deepEqual([problems, refused, lost > 0], [[], undefined, isLost], `${file} ${cell.way} while ${cell.when}`);
  }
});

test("damaged files of a node with a tier: nothing is lost", { timeout: 60_000 }, async () => {
  using template = await makeTemplate({ hasTier: true });
  for (const part of ["blobs/files", "blobs/log"]) {
    const file = template.files.find((one) => one.includes(part));
    ok(file !== undefined, `a file of ${part}`);
    const { lost, problems, refused } = await tryCell(template, { file, way: "flipped", when: "serving" });
    deepEqual([problems, refused, lost], [[], undefined, 0], file);
  }
});
