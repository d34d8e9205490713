import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ConnectionsConfig, placeLimitsOf } from "./connections-config.ts";
import { Config } from "./config.ts";

const limitsOf = (given: unknown, cleartext = false, filesMax = Infinity) =>
  placeLimitsOf(ConnectionsConfig.parse(given), { cleartext, filesMax });

test("the limits of connections have defaults that fit the machine and the proxy", () => {
  deepEqual(limitsOf({}), {
    max: 10_000,
    lobbyMin: 500,
    perAddressMax: 256,
    firstCallMs: 10_000,
    strangerIdleMs: 60_000,
  });
  equal(limitsOf({}, false, 1_024).max, 512);
  equal(limitsOf({}, true).perAddressMax, 10_000);
  equal(limitsOf({ perAddress: 8 }, true).perAddressMax, 8);
  equal(limitsOf({ max: 2_000 }, false, 1_024).max, 2_000);
});

test("settings of connections are checked like all others", () => {
  equal(Config.safeParse({ edge: { connections: { max: 100, firstCall: "3s" } } }).success, true);
  for (const wrong of [{ max: 0 }, { perAddress: 1 }, { firstCall: "1h" }, { idle: "1m" }])
    equal(Config.safeParse({ edge: { connections: wrong } }).success, false, JSON.stringify(wrong));
});
