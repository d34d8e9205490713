import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { whoOf } from "./id-token.ts";

const github = { repository: "mill/flour", ref: "refs/heads/main", event_name: "push", run_id: "7", event: { a: 1 } };
const subjectOf = (more: object, facts: object = {}): string =>
  whoOf({ ...github, ...more }, { tenant: "default", task: "t0-1", ...facts }).subject;

test("the subject says what a job is about", () => {
  deepEqual(
    [
      subjectOf({}),
      subjectOf({ event_name: "pull_request" }),
      subjectOf({}, { environment: "prod:eu" }),
      subjectOf({}, { tenant: "acme" }),
    ],
    [
      "repo:mill/flour:ref:refs/heads/main",
      "repo:mill/flour:pull_request",
      "repo:mill/flour:environment:prod%3Aeu",
      "tenant:acme:repo:mill/flour:ref:refs/heads/main",
    ],
  );
});

test("claims are texts, with the run's own numbers", () => {
  const { claims } = whoOf(github, { tenant: "acme", task: "t0-1" });
  equal(claims["run_id"], "7");
  equal(claims["tenant"], "acme");
  equal(claims["event"], undefined);
});
