import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import { FormerClaims } from "./former-claims.ts";

test("two callers who ask for the former claims of a shard send one request", async () => {
  const asked: number[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const sync = (shard: number): Promise<void> => {
    asked.push(shard);
    const answer = Promise.withResolvers<void>();
    answers.push(answer);
    return answer.promise;
  };
  const crash = new AbortController().signal;
  const former = new FormerClaims({
    renewals: { sync },
    clock: new ManualClock(),
    random: new Random(1),
    shards: 2,
    crash,
  });
  const both = [former.given(0), former.given(0), former.given(1)];
  deepEqual(asked, [0, 1]);
  for (const { resolve } of answers) resolve();
  deepEqual(await Promise.all(both), [true, true, true]);
  deepEqual(await former.given(0), true);
  deepEqual(asked, [0, 1]);
});
