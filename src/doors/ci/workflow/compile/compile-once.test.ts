import { equal, notEqual } from "node:assert/strict";
import { test } from "node:test";
import { compileOnce } from "./compile-once.ts";

const job = "runs-on: ubuntu-latest, steps: [{ run: 'true' }]";
const own = { path: ".github/workflows/a.yml", text: `on: push\njobs: { a: { ${job} } }\n` };
const caller = { path: ".github/workflows/b.yml", text: "on: push\njobs: { b: { uses: ./c.yml } }\n" };
const callee = (name: string) => ({ path: "c.yml", text: `on: workflow_call\njobs: { ${name}: { ${job} } }\n` });

test("the same file is compiled once, also when it was read again", () => {
  const first = compileOnce(own);
  equal(first.ok, true);
  equal(compileOnce({ ...own }), first);
  notEqual(compileOnce({ ...own, text: `${own.text}\n` }), first);
  notEqual(compileOnce({ ...own, path: "other.yml" }), first);
});

test("a file is compiled again when a file that it calls has changed, or is there now", () => {
  const asked: string[] = [];
  const calling = (found: ReturnType<typeof callee> | undefined) =>
    compileOnce(caller, (uses) => {
      asked.push(uses);
      return found;
    });
  const missing = calling(undefined);
  equal(missing.ok, false);
  equal(calling(undefined), missing);
  const first = calling(callee("one"));
  equal(first.ok, true);
  equal(calling(callee("one")), first);
  notEqual(calling(callee("two")), first);
  equal(asked.length >= 5, true, "callers learn what it calls each time");
});

test("what is compiled without following calls is another result", () => {
  const alone = compileOnce(caller);
  equal(alone.ok, true);
  notEqual(
    compileOnce(caller, () => callee("one")),
    alone,
  );
});
