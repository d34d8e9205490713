import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { BuildConfig } from "#doors/build/config.ts";
import { assetSettings } from "./settings.ts";

const from = ["https://example.com/files/"];
const rows = [
  { what: "anywhere where only this machine calls", isHere: true, build: {}, allow: ["https://", "http://"] },
  { what: "but where the operator says so, only there", isHere: true, build: { fetchFrom: from }, allow: from },
  { what: "and nowhere, too", isHere: true, build: { fetchFrom: [] }, allow: [] },
  { what: "nowhere for callers of other machines", isHere: false, build: {}, allow: [] },
];
for (const { what, isHere, build, allow } of rows)
  test(`a node fetches remote assets: ${what}`, () => {
    deepEqual(assetSettings(BuildConfig.parse(build), isHere).allow, allow);
  });
