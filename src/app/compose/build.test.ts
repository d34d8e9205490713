import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { BuildConfig } from "#app/config/build-config.ts";
import { buildSettings } from "./build.ts";

const token = { name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256("secret") };
const from = ["https://example.com/files/"];
const rows = [
  { what: "on this machine alone, anywhere", identity: {}, build: {}, allow: ["https://", "http://"] },
  { what: "but where the operator says so, only there", identity: {}, build: { fetchFrom: from }, allow: from },
  { what: "and nowhere, too", identity: {}, build: { fetchFrom: [] }, allow: [] },
  { what: "for callers of other machines nowhere", identity: { tokens: [token] }, build: {}, allow: [] },
  {
    what: "nor for anybody without a name",
    identity: { anonymous: { tenant: "acme", roles: ["cache-reader"] } },
    build: {},
    allow: [],
  },
];
for (const { what, identity, build, allow } of rows)
  test(`a node fetches remote assets: ${what}`, () => {
    deepEqual(buildSettings(BuildConfig.parse(build), Identity.parse(identity)).assets.allow, allow);
  });
