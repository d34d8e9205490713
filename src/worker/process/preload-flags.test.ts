import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { preloadFlags } from "./preload-flags.ts";

test("only what is imported first is passed on", () => {
  deepEqual(preloadFlags(["--max-semi-space-size=64", "--import", "file:///strip.js", "--no-warnings"]), [
    "--import",
    "file:///strip.js",
  ]);
  deepEqual(preloadFlags(["--import=file:///strip.js", "--cpu-prof"]), ["--import=file:///strip.js"]);
  deepEqual(preloadFlags(["--import"]), []);
  deepEqual(preloadFlags([]), []);
});
