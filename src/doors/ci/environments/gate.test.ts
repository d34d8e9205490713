import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { approvedBy, type Gate, gateOf, type GateFacts, reviewId, reviewsIn, type Review, type Rules } from "./gate.ts";

const rules = (more: Partial<Rules> = {}): Rules => ({
  environment: "production",
  reviewers: ["ada", "bob"],
  approvals: 1,
  waitMs: 0,
  branches: [],
  preventsSelfReview: false,
  ...more,
});
const yes = (person: string, more: Partial<Review> = {}): Review => ({
  environment: "Production",
  person,
  state: "approved",
  comment: "",
  ...more,
});
const gate = (more: Partial<GateFacts>): Gate =>
  gateOf({ rules: [rules()], reviews: [], ref: "main", actor: "eve", sinceMs: 1_000, nowMs: 1_000, ...more });

describe("CI-63 an environment", () => {
  test("without rules lets everything in", () => {
    equal(gate({ rules: [rules({ reviewers: [], approvals: 0 })] }).kind, "open");
  });

  test("waits for as many people as it wants, GA2 each counted once", () => {
    const two = [rules({ approvals: 2 })];
    equal(gate({ rules: two }).kind, "wait");
    equal(gate({ rules: two, reviews: [yes("ada")] }).kind, "wait");
    equal(gate({ rules: two, reviews: [yes("ada"), yes("ada")] }).kind, "wait");
    equal(gate({ rules: two, reviews: [yes("ada"), yes("bob")] }).kind, "open");
    equal(reviewId({ environment: "PRODUCTION", person: "ada" }), reviewId(yes("ada")));
  });

  test("GA2 hears only whom it names, and not who started the run if it says so", () => {
    equal(gate({ reviews: [yes("eve")] }).kind, "wait");
    equal(gate({ reviews: [yes("eve", { state: "rejected" })] }).kind, "wait");
    const own = [rules({ reviewers: [], preventsSelfReview: true })];
    equal(gate({ rules: own, reviews: [yes("eve")] }).kind, "wait");
    equal(gate({ rules: own, reviews: [yes("anyone")] }).kind, "open");
    equal(gate({ reviews: [yes("ada", { environment: "staging" })] }).kind, "wait");
  });

  test("is refused by one word, and what a person said first counts", () => {
    const no = gate({
      rules: [rules({ approvals: 2 })],
      reviews: [yes("ada"), yes("bob", { state: "rejected", comment: "late" })],
    });
    deepEqual(no, { kind: "refused", reason: "the deployment to production was rejected by bob: late" });
    deepEqual(approvedBy(rules(), [yes("ada"), yes("ada", { state: "rejected" })], "eve"), ["ada"]);
    equal(gate({ reviews: [yes("ada"), yes("ada", { state: "rejected" })] }).kind, "open");
  });

  test("waits for its timer from when the job first asked, also when it was approved", () => {
    const timed = [rules({ waitMs: 60_000 })];
    deepEqual(gate({ rules: timed, reviews: [yes("ada")], nowMs: 21_000 }), { kind: "wait", forMs: 40_000 });
    equal(gate({ rules: timed, reviews: [yes("ada")], nowMs: 61_000 }).kind, "open");
    equal(gate({ rules: timed, nowMs: 61_000 }).kind, "wait");
  });

  test("lets only the branches in that it names, also when it was approved", () => {
    const named = [rules({ branches: ["main", "release/*"] })];
    match((gate({ rules: named, ref: "topic", reviews: [yes("ada")] }) as { reason: string }).reason, /not allowed/);
    equal(gate({ rules: named, ref: "release/1", reviews: [yes("ada")] }).kind, "open");
  });

  test("GA1 each of several must let the job in", () => {
    const both = [rules(), rules({ environment: "eu" })];
    equal(gate({ rules: both, reviews: [yes("ada")] }).kind, "wait");
    equal(gate({ rules: both, reviews: [yes("ada"), yes("ada", { environment: "eu" })] }).kind, "open");
  });

  test("reads reviews only, and only those that are whole", () => {
    const payload = JSON.stringify(yes("ada"));
    const read = reviewsIn([
      { id: "1", name: "ci.asked", payload: "{}" },
      { id: "2", name: "ci.review", payload: "{}" },
      { id: "3", name: "ci.review", payload, atMs: 5 },
    ]);
    deepEqual(read, [{ ...yes("ada"), atMs: 5 }]);
  });
});
