import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { until } from "#testing/until.ts";
import type { LogBatch, LogEvent, LogQuery } from "./log-feed.ts";
import { LogViewers } from "./log-viewers.ts";

const lineBytes = 10;

/** A log that grows when told; counts who reads it. */
function growing(token = 1) {
  let count = 0;
  let isOver = false;
  let news = Promise.withResolvers<void>();
  const reads = { begun: 0, open: 0 };
  const wake = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  async function* feed({ from, signal }: LogQuery): AsyncGenerator<LogBatch> {
    reads.begun += 1;
    reads.open += 1;
    signal.addEventListener("abort", wake, { once: true });
    try {
      let offset = from?.offset ?? 0;
      for (;;) {
        const end = Math.min(count * lineBytes, (Math.floor(offset / 1_000) + 1) * 1_000); // at most 100 lines
        if (end > offset) yield batchOf(token, offset, end);
        else if (isOver) return yield { token, offset, lines: [], ends: [], end, ended: true };
        else if (signal.aborted) return;
        else await news.promise;
        offset = end;
      }
    } finally {
      reads.open -= 1;
    }
  }
  return {
    reads,
    feed,
    grow(lines: number) {
      count += lines;
      wake();
    },
    end() {
      isOver = true;
      wake();
    },
  };
}

function batchOf(token: number, offset: number, end: number): LogBatch {
  const ends = Array.from({ length: (end - offset) / lineBytes }, (_, at) => offset + (at + 1) * lineBytes);
  const lines = ends.map((at) => ({ at: "now", step: (at / lineBytes) % 2, kind: "plain" as const, text: `${at}` }));
  return { token, offset, lines, ends, end };
}

const at = { run: "r", tenant: "t", task: 1 };
const never = new AbortController().signal;
const numbers = (count: number, from = 0): readonly string[] =>
  Array.from({ length: count }, (_, n) => String((from + n + 1) * lineBytes));

const textsIn = ({ value }: IteratorResult<LogEvent>): readonly string[] =>
  (value as LogEvent).data.lines.map(({ text }) => text);

function rig(bytesMax?: number) {
  const log = growing();
  const clock = new ManualClock();
  const viewers = new LogViewers({ feed: log.feed, clock, ...(bytesMax !== undefined && { bytesMax }) });
  return { ...log, log, clock, viewers };
}

async function textsOf(events: ReturnType<LogViewers["view"]>): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const { data } of events) texts.push(...data.lines.map(({ text }) => text));
  return texts;
}

describe("viewers of a log", { timeout: 90_000 }, () => {
  test("a hundred share one subscription; each sees each line once, and JSON is written once", async () => {
    const { log, reads, viewers } = rig();
    const seen = Array.from({ length: 100 }, () => textsOf(viewers.view({ ...at, signal: never })));
    log.grow(250);
    log.end();
    for (const texts of await Promise.all(seen)) deepEqual(texts, numbers(250));
    deepEqual(reads, { begun: 1, open: 0 });
    equal(viewers.subscriptions, 0, "the last one to leave ends it");
  });

  test("one that comes later reads by itself until it has caught up, and joins in the middle of a batch", async () => {
    const { log, reads, viewers, clock } = rig();
    log.grow(90);
    const first = viewers.view({ ...at, signal: never, from: { token: 1, offset: 500 } });
    const shown = first.next();
    await until("its lines are due", async () => (await clock.advance(100), true));
    deepEqual(textsIn(await shown), numbers(40, 50));
    const within = viewers.view({ ...at, signal: never, from: { token: 1, offset: 700 } });
    deepEqual(textsIn(await within.next()), numbers(20, 70));
    equal(reads.begun, 1, "its place is among what is shared");
    const second = textsOf(viewers.view({ ...at, signal: never }));
    await until("it reads", async () => (await clock.advance(100), reads.begun === 2));
    await until("it shares", async () => (await clock.advance(100), reads.open === 1));
    log.grow(5);
    log.end();
    deepEqual(await second, numbers(95));
    await first.return(undefined);
    await within.return(undefined);
    equal(reads.open, 0);
  });

  test("one that does not read is shed; others are not held up, and it goes on from its place", async () => {
    const { log, viewers } = rig(20_000);
    log.grow(100);
    const slow = viewers.view({ ...at, signal: never });
    equal((await slow.next()).value?.data.lines.length, 100);
    const fast = textsOf(viewers.view({ ...at, signal: never }));
    log.grow(5_000);
    log.end();
    deepEqual(await fast, numbers(5_100));
    const last = (await slow.next()).value;
    match(last?.data.shed ?? "", /too slowly/);
    equal(last?.id, "1.1000", "the place behind what it has seen");
    equal((await slow.next()).done, true);
    equal(viewers.shed, 1);
    const again = await textsOf(viewers.view({ ...at, signal: never, from: { token: 1, offset: 1_000 } }));
    deepEqual(again, numbers(5_000, 100));
  });

  test("a viewer of one step gets the lines of that step", async () => {
    const { log, viewers } = rig();
    const all = textsOf(viewers.view({ ...at, signal: never }));
    const odd = textsOf(viewers.view({ ...at, signal: never, step: 1 }));
    log.grow(20);
    log.end();
    equal((await all).length, 20);
    deepEqual(
      await odd,
      numbers(20).filter((_, n) => n % 2 === 0),
    );
  });

  test("who leaves while nothing comes disturbs no other, and the last one ends the subscription", async () => {
    const { log, reads, viewers } = rig();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = textsOf(viewers.view({ ...at, signal: one.signal }));
    const second = textsOf(viewers.view({ ...at, signal: two.signal }));
    one.abort();
    deepEqual(await first, []);
    equal(reads.open, 1);
    log.grow(1);
    two.abort();
    await second;
    await until("nobody reads", async () => reads.open === 0);
  });

  test("tenants and tasks share nothing", async () => {
    const { log, reads, viewers } = rig();
    const others = [at, { ...at, tenant: "other" }, { ...at, task: 2 }, { ...at, run: "s" }];
    const seen = others.map((one) => textsOf(viewers.view({ ...one, signal: never })));
    log.grow(1);
    log.end();
    await Promise.all(seen);
    equal(reads.begun, 4);
  });
});
