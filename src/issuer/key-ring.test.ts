import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ringAt, type RingKey, type RingRules } from "./key-ring.ts";

const rules: RingRules = { signsForMs: 100, announcedMs: 10, tokenMsMax: 30, skewMs: 5 };
const a = { kid: "a", signsFromMs: 0 };
const b = { kid: "b", signsFromMs: 100 };

describe("the issuer's key ring", () => {
  type Row = readonly [
    name: string,
    keys: readonly RingKey[],
    nowMs: number,
    signing: string | undefined,
    trusted: string,
    spent: string,
    due: number | undefined,
  ];
  const rows: readonly Row[] = [
    ["without a key, one is due at once", [], 7, undefined, "", "", 7],
    ["a young key signs", [a], 50, "a", "a", "", undefined],
    ["IS2 before it ends, the next is due for when it ends", [a], 90, "a", "a", "", 100],
    ["one that ended long ago signs until the next was published for a while", [a], 500, "a", "a", "", 510],
    ["IS2 the next is published and does not sign yet", [a, b], 95, "a", "a b", "", undefined],
    ["the next signs from its time on", [a, b], 100, "b", "a b", "", undefined],
    ["IS1 the old one is trusted until its last token has ended", [b, a], 135, "b", "a b", "", undefined],
    ["IS1 then it goes", [a, b], 136, "b", "b", "a", undefined],
  ];
  for (const [name, keys, nowMs, signing, trusted, spent, due] of rows)
    test(name, () => {
      const ring = ringAt(keys, nowMs, rules);
      equal(ring.signing?.kid, signing);
      deepEqual(
        [ring.trusted, ring.spent].map((some) => some.map(({ kid }) => kid).join(" ")),
        [trusted, spent],
      );
      equal(ring.dueFromMs, due);
    });

  test("IS1 no token outlives the trust in its key, and a key is published before it signs", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 60 }), (steps) => {
        let [nowMs, keys, made] = [0, [] as readonly RingKey[], 0];
        const issued: { readonly kid: string; readonly untilMs: number }[] = [];
        const seen = new Map<string, number>();
        for (const step of steps) {
          nowMs += step;
          let ring = ringAt(keys, nowMs, rules);
          if (ring.dueFromMs !== undefined) keys = [...keys, { kid: `k${(made += 1)}`, signsFromMs: ring.dueFromMs }];
          keys = keys.filter((key) => !ring.spent.includes(key));
          ring = ringAt(keys, nowMs, rules);
          for (const { kid } of ring.trusted) if (!seen.has(kid)) seen.set(kid, nowMs);
          const { signing } = ring;
          ok(signing);
          if (signing.kid !== "k1") ok(nowMs - (seen.get(signing.kid) ?? nowMs) >= rules.announcedMs - 60);
          issued.push({ kid: signing.kid, untilMs: nowMs + rules.tokenMsMax });
          for (const { kid, untilMs } of issued)
            if (untilMs > nowMs)
              ok(
                ring.trusted.some((key) => key.kid === kid),
                `${kid} at ${nowMs}`,
              );
        }
      }),
    );
  });
});
