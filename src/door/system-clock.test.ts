import { ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./system-clock.ts";

test("the machine's clock sleeps, can be woken, and does not fire early for a delay beyond its timers", async () => {
  const began = systemClock.monotonicMs();
  await systemClock.sleep(5);
  ok(systemClock.monotonicMs() - began >= 4);
  const abort = new AbortController();
  const sleeping = systemClock.sleep(2 ** 40, abort.signal);
  let fired = false;
  const cancel = systemClock.after(2 ** 40, () => {
    fired = true;
  });
  await systemClock.sleep(5);
  ok(!fired);
  cancel();
  abort.abort(new Error("enough"));
  await rejects(sleeping, /enough/);
  await rejects(systemClock.sleep(1, abort.signal), /enough/);
});
