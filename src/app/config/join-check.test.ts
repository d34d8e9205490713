import { doesNotThrow, equal, match, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Config } from "./config.ts";
import { checkAlone, checkJoin, whyAlone } from "./join-check.ts";

const url = "postgres://db/millrace";
const mesh = { join: ["10.0.0.5:7946"] };
const journal = { kind: "postgres", url };
const tier = { kind: "directory", directory: "/mnt/builds", names: { kind: "postgres", url } };
const refusal = (given: object): string => {
  try {
    checkJoin(Config.parse(given));
    return "";
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    return error.message;
  }
};

describe("a node that joins others", () => {
  test("shares a journal, a tier and names with them", () => {
    doesNotThrow(() => checkJoin(Config.parse({ mesh, journal, blobs: { kind: "disk", authoritative: tier } })));
    doesNotThrow(() => checkJoin(Config.parse({ mesh, journal, blobs: { kind: "directory", directory: "/mnt" } })));
  });

  test("is refused otherwise, with what to set", () => {
    const cases: readonly [object, RegExp][] = [
      [{ mesh }, /journal of kind sqlite.*Set journal: \{ kind: postgres/],
      [{ mesh, journal: { kind: "memory" } }, /journal of kind memory/],
      [{ mesh, journal }, /blobs\.authoritative/],
      [{ mesh, journal, blobs: { kind: "memory" } }, /blobs\.authoritative/],
      [
        { mesh, journal, blobs: { kind: "disk", authoritative: { ...tier, names: { kind: "here" } } } },
        /blobs\.authoritative\.names/,
      ],
    ];
    for (const [given, why] of cases) match(refusal(given), why);
  });

  test("a node that joins no other may have any settings", () => {
    doesNotThrow(() => checkJoin(Config.parse({})));
    doesNotThrow(() => checkJoin(Config.parse({ mesh: {} })));
  });
});

describe("a node that joins no other, on a journal that others could share", () => {
  const seen = { node: "b", address: "", features: 1, state: "up", facts: {}, seenAgoMs: 0, alive: true } as const;
  const why = whyAlone(Config.parse({ journal })) ?? "";

  test("must be the only one unless it shares bytes and names too", () => {
    match(why, /blobs\.authoritative/);
    equal(whyAlone(Config.parse({ journal, blobs: { kind: "disk", authoritative: tier } })), undefined);
    equal(whyAlone(Config.parse({ journal, blobs: { kind: "directory", directory: "/mnt" } })), undefined);
    equal(whyAlone(Config.parse({})), undefined, "a journal of its own");
    const shared = { journal, blobs: { kind: "directory", directory: "/mnt" } };
    const listen = ["tcp:127.0.0.1:7433"];
    match(whyAlone(Config.parse({ ...shared, node: { listen } })) ?? "", /set cluster\.secretFile/);
    equal(whyAlone(Config.parse({ ...shared, node: { listen }, cluster: { secretFile: "/s" } })), undefined);
  });

  test("is refused if another is there, but not for its own past, or for one that is gone or leaving", () => {
    throws(
      () => checkAlone(why, "a", [seen]),
      (error) => isFault(error, "invalid") && error.facts["node"] === "b",
    );
    doesNotThrow(() => checkAlone(why, "b", [seen]));
    doesNotThrow(() =>
      checkAlone(why, "a", [
        { ...seen, alive: false },
        { ...seen, state: "leaving" },
      ]),
    );
  });
});
