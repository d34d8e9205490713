import { equal, ok } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { teaDoor } from "#e2e/node/fifth-door/tea-door.ts";
import { bundleConsole } from "./console.ts";

test("a page of a door and its part of jobs' pages are in the console's bundle", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-page-"));
  context.after(() => rm(folder, { recursive: true }));
  const module = join(folder, "tea.tsx");
  await writeFile(module, `export const Page = () => "a page about tea"; export const Part = () => "a pot";`);
  const files = await bundleConsole([{ ...teaDoor(module), jobPart: { module } }]);
  equal(files[0]?.name, "index.html");
  const script = Buffer.from(files.find(({ name }) => name.endsWith(".js"))?.bytes ?? []).toString();
  ok(script.includes("a page about tea") && script.includes('path:"tea"'), script.slice(-2_000));
  ok(script.includes("a pot") && script.includes('door:"tea"'), script.slice(-2_000));
});
