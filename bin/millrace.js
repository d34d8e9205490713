#!/usr/bin/env node
import { join } from "node:path";
import { packageRoot, runOnPinnedNode } from "./pinned-node.js";

runOnPinnedNode([join(packageRoot, "src", "cli", "main.ts"), ...process.argv.slice(2)]);
