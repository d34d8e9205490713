/** What runs are called. */
import { equal, match } from "node:assert/strict";
import { test } from "node:test";
import { workflowOf } from "#doors/ci/run-frame.ts";
import { shownTitle, titleOf } from "./title.ts";

const named = (runName: string, attempt?: number): string => {
  const text = `name: Mill\nrun-name: ${JSON.stringify(runName)}\non: push\njobs: { a: { runs-on: x, steps: [{ run: echo }] } }\n`;
  const file = { path: "w.yml", text };
  return titleOf(workflowOf({ file }), { github: { actor: "ada" }, inputs: { corn: "rye" }, vars: {} }, attempt);
};
const shown = (title: string): string => shownTitle(title, { run: "j2-3", number: 17 });

test("a run's name knows the run's number, id and attempt", () => {
  equal(shown(named("${{ github.actor }} grinds ${{ inputs.corn }}")), "ada grinds rye");
  equal(shown(named("#${{ github.run_number }} of ${{ github.run_id }}")), "#17 of 196610");
  equal(shown(named("${{ format('{0}-{1}', github.run_number, github.run_attempt) }}")), "17-1");
  equal(shown(named("${{ github.run_attempt > 1 && 'again' || 'first' }}", 2)), "again");
  equal(shown(named("  ")), "Mill");
});

test("a long name is not cut within a number that is not known yet", () => {
  for (const letters of [170, 180, 190, 199, 200]) {
    const title = named(`${"x".repeat(letters)}\${{ github.run_number }}`);
    match(shown(title), /^x+(?:17)?$/);
  }
});
