#!/usr/bin/env node
import { join } from "node:path";
import { packageRoot, runOnPinnedNode } from "./pinned-node.js";

// A node makes garbage at a high rate, nearly all of it short-lived: with V8's default of 16 MiB for the young, half of
// what dies within a tenth of a second is copied twice first, which costs as much CPU as the work itself.
const isNode = process.argv[2] === "up";
const flags = isNode ? ["--max-semi-space-size=64"] : [];
const main = join(packageRoot, "src", "cli", "main.ts");

runOnPinnedNode([...flags, main, ...process.argv.slice(2)], { tether: isNode });
