import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { withoutSecrets } from "./log-mask.ts";
import { Log, type LogFields, type LogSettings } from "./log.ts";

function rig(settings: Partial<LogSettings> = {}) {
  const clock = new ManualClock(Date.UTC(2026, 10, 15));
  const lines: string[] = [];
  const log = new Log((line) => lines.push(line), clock, settings);
  const told = (): unknown[] => lines.map((line) => JSON.parse(line) as unknown);
  return { clock, log, lines, told };
}

const token = "millrace_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
const jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl";

describe("the log", () => {
  test("is one JSON object per line, in the order of the table", () => {
    const { log, lines } = rig();
    log.warn("call refused", { reason: "token-expired", method: "work.Submit", tookMs: 1.5, address: "10.0.0.7" });
    deepEqual(lines, [
      '{"at":"2026-11-15T00:00:00.000Z","level":"warn","event":"call refused","method":"work.Submit",' +
        '"reason":"token-expired","address":"10.0.0.7","tookMs":1.5}\n',
    ]);
  });

  test("leaves out what is below its level", () => {
    const { log, told } = rig({ level: "warn" });
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    deepEqual(
      told().map((line) => (line as { event: string }).event),
      ["c", "d"],
    );
  });

  test("writes only known fields with their own type, whatever it is given (L1)", () => {
    const { log, told } = rig();
    const forced = { authorization: `Bearer ${token}`, password: "x", tenant: { token }, bytes: "many", count: NaN };
    log.info("forced", forced as unknown as LogFields);
    deepEqual(told(), [{ at: "2026-11-15T00:00:00.000Z", level: "info", event: "forced" }]);
  });

  test("describes an error with its causes, and masks what looks like a secret (L1)", () => {
    const { log, lines } = rig();
    const cause = new Error(`connect postgres://ada:hunter2@db.example/x with Bearer ${token}`);
    log.error("failed", { error: new Fault("unavailable", "append", { shard: 7 }, cause) });
    match(lines[0] ?? "", /append: unavailable \(shard=7\); because connect postgres:\/\/\*\*\*@db\.example/);
    ok(!/hunter2|millrace_0123/.test(lines.join("")));
    log.error("odd", { error: { message: token } });
    match(lines[1] ?? "", /"error":"object"/);
  });

  test("limits the length of a line, and says so (L2)", () => {
    const { log, lines } = rig({ lineLengthMax: 300 });
    log.info("long", { method: "m".repeat(100_000), tenant: "t".repeat(100), file: "f".repeat(400), count: 7 });
    const line = lines[0] ?? "";
    ok(line.length <= 300, String(line.length));
    deepEqual(Object.keys(JSON.parse(line) as object), ["at", "level", "event", "tenant", "cut", "count"]);
  });

  test("stays one bounded line for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 2_000 }), (value) => {
        const { log, lines } = rig();
        log.info(value.slice(0, 100), { method: value, error: value, reason: value });
        equal(lines.length, 1);
        equal(lines[0]?.indexOf("\n"), (lines[0]?.length ?? 0) - 1);
        ok((lines[0]?.length ?? 0) <= 4_096);
      }),
      { numRuns: 200 },
    );
  });

  test("writes the first few similar lines, and then how many more there were (L2)", async () => {
    const { log, clock, told } = rig({ repeatsMax: 2, repeatsWithinMs: 1_000 });
    for (let call = 0; call < 1_000; call += 1) log.warn("refused", { reason: "token-expired", address: `${call}` });
    log.warn("refused", { reason: "token-unknown" });
    equal(told().length, 3);
    await clock.advance(1_000);
    deepEqual(told().at(-1), {
      at: "2026-11-15T00:00:01.000Z",
      level: "warn",
      event: "refused (more like this)",
      reason: "token-expired",
      count: 998,
    });
    log.warn("refused", { reason: "token-expired" });
    equal(told().length, 5);
    equal(clock.pending, 0);
  });

  test("starts again after the interval, without a timer if nothing was dropped", async () => {
    const { log, clock, told } = rig({ repeatsMax: 1, repeatsWithinMs: 1_000 });
    log.info("tick");
    equal(clock.pending, 0);
    await clock.advance(1_000);
    log.info("tick");
    equal(told().length, 2);
  });

  test("remembers few kinds, however many reasons are generated (L2)", async () => {
    const { log, clock, told } = rig({ repeatsMax: 1, repeatsWithinMs: 1_000 });
    for (let at = 0; at < 10_000; at += 1) log.warn("refused", { reason: `made-up-${at}` });
    ok(told().length <= 502);
    await clock.advance(2_000);
    match(JSON.stringify(told().at(-1)), /other events \(more like this\)","count":9499/);
  });

  test("writes outstanding counts when it is closed", () => {
    const { log, clock, told } = rig({ repeatsMax: 1 });
    log.info("tick");
    log.info("tick");
    log[Symbol.dispose]();
    equal(told().length, 2);
    equal(clock.pending, 0);
  });
});

describe("what looks like a secret", () => {
  test("is masked wherever it occurs", () => {
    const cases: readonly (readonly [string, string])[] = [
      [`authorization: Bearer ${token}`, "authorization: Bearer *** (a token)"],
      ["Basic YWRhOmh1bnRlcjI=", "Basic ***"],
      [`got ${jwt}, sorry`, "got *** (a JWT), sorry"],
      [`a ${token} b`, "a *** (a token) b"],
      ["postgres://ada:hunter2@db/x", "postgres://***@db/x"],
      ["?password=hunter2&x=1", "?password=***&x=1"],
      ['{"api_key": "abc"}', '{"api_key": "***"}'],
      ["-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nx", "*** (a private key)\nx"],
      ["-----BEGIN PRIVATE KEY-----\nabc", "*** (a private key)"],
    ];
    for (const [text, shown] of cases) equal(withoutSecrets(text), shown);
  });

  test("ordinary text is not masked", () => {
    for (const text of [
      "the bearer token is not known here",
      "read a token: invalid (name=ci file=/etc/millrace/ci.token)",
      "https://login.example/keys?x=1",
    ])
      equal(withoutSecrets(text), text);
  });
});
