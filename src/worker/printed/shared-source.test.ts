import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import type { LiveSource } from "./live-source.ts";
import { sharedSource } from "./shared-source.ts";

const key = { tenant: "t", task: "t0-1", token: 1, name: "output" };
const never = new AbortController().signal;

/** Answers when told; counts questions. */
function asking() {
  const questions: { offset: number; signal: AbortSignal; answer: (text: string) => void }[] = [];
  const source: LiveSource = {
    size: async () => undefined,
    pull: (_worker, _key, offset, { signal }) =>
      new Promise((resolve) => questions.push({ offset, signal, answer: (text) => resolve(Buffer.from(text)) })),
  };
  return { questions, source: sharedSource(source) };
}

test("a thousand viewers of one place ask once, and those that come later not at all", async () => {
  const { questions, source } = asking();
  const options = { waitMs: 5_000, signal: never };
  const viewers = Array.from({ length: 1_000 }, () => source.pull("w", key, 0, options));
  equal(questions.length, 1);
  questions[0]?.answer("grain");
  deepEqual(new Set((await Promise.all(viewers)).map(String)), new Set(["grain"]));
  equal(String(await source.pull("w", key, 0, options)), "grain");
  equal(questions.length, 1);
  void source.pull("w", { ...key, tenant: "other" }, 0, options);
  equal(questions.length, 2, "another tenant's stream is another one");
});

test("a viewer that leaves disturbs no other; the last one ends the question", async () => {
  const { questions, source } = asking();
  const [one, two] = [new AbortController(), new AbortController()];
  const first = source.pull("w", key, 0, { waitMs: 5_000, signal: one.signal });
  const second = source.pull("w", key, 0, { waitMs: 5_000, signal: two.signal });
  one.abort();
  equal(await first, undefined);
  equal(questions[0]?.signal.aborted, false);
  const now = source.pull("w", key, 0, { waitMs: 0, signal: never });
  equal(questions.length, 2);
  questions[1]?.answer("");
  equal((await now)?.length, 0);
  two.abort();
  equal(await second, undefined);
  equal(questions[0]?.signal.aborted, true);
});
