/** The reader cases of others, where they are: MILLRACE_CORPORA names the folder. */
import { deepEqual, notDeepEqual, ok } from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { outcomeOf, type ReaderCase, readerCase } from "./corpus-testing.ts";

const folder = join(process.env["MILLRACE_CORPORA"] ?? "", "workflow-reader");
const isThere = process.env["MILLRACE_CORPORA"] !== undefined && existsSync(folder);
const skip = isThere ? false : "needs corpora: MILLRACE_CORPORA names no folder with workflow-reader/*.yml";

/** Cases that we answer otherwise, each with the reason. When one starts to pass, its line must go. */
const otherwise: Readonly<Record<string, string>> = {};

describe("the workflow reader cases of others", { skip }, () => {
  const cases = isThere ? readdirSync(folder).filter((name) => name.endsWith(".yml")) : [];
  let passed = 0;
  for (const name of cases)
    test(name, () => {
      const item = readerCase(name, readFileSync(join(folder, name), "utf8"));
      const reason = otherwise[name];
      if (reason !== undefined) return notDeepEqual(comparable(outcomeOf(item)), comparable(item.expected), `passes now: ${reason}`);
      deepEqual(comparable(outcomeOf(item)), comparable(item.expected));
      passed += 1;
      return undefined;
    });

  test("nearly all of them pass", (context) => {
    context.diagnostic(`${passed} of ${cases.length} reader cases pass`);
    ok(passed >= cases.length * 0.9, `${passed} of ${cases.length}`);
  });
});

function comparable(model: unknown): unknown {
  return model;
}
export type { ReaderCase };
