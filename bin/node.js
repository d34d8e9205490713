#!/usr/bin/env node
// `node bin/node.js <script or flags>`: what npm scripts use instead of plain `node`.
import { runOnPinnedNode } from "./pinned-node.js";

runOnPinnedNode(process.argv.slice(2));
