/** CI-53 to CI-59: what deliveries of forges mean, and which of them are believed. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { type Forge, headingOf, isSigned, payloadIn } from "./forge.ts";
import { type ForgeEvent, meaningOf } from "./forge-event.ts";
import type { Fields } from "./reading.ts";

const sha = (digit: string): string => digit.repeat(40);
const body = Buffer.from('{"a":1}');
const secret = Buffer.from("s3cret");
const hmac = createHmac("sha256", secret).update(body).digest("hex");

describe("signatures", () => {
  const cases: readonly (readonly [forge: Forge, headers: Record<string, string>, isRight: boolean])[] = [
    ["github", { "x-hub-signature-256": `sha256=${hmac}` }, true],
    ["github", { "x-hub-signature-256": `sha256=${hmac.toUpperCase()}` }, true],
    ["github", { "x-hub-signature-256": hmac.slice(1) }, false],
    ["github", { "x-hub-signature-256": "" }, false],
    ["github", { "x-hub-signature": "sha1=00" }, false],
    ["github", { "x-gitlab-token": "s3cret" }, false],
    ["gitea", { "x-gitea-signature": hmac }, true],
    ["gitea", { "x-forgejo-signature": hmac }, true],
    ["gitea", { "x-gitea-signature": hmac.replace(/^./, "g") }, false],
    ["gitlab", { "x-gitlab-token": "s3cret" }, true],
    ["gitlab", { "x-gitlab-token": "s3cret " }, true], // headers are trimmed by HTTP itself
    ["gitlab", { "x-gitlab-token": "s3cre" }, false],
    ["gitlab", {}, false],
  ];
  for (const [forge, headers, isRight] of cases)
    test(`${forge} ${JSON.stringify(headers)}: ${isRight}`, () =>
      equal(isSigned(forge, new Headers(headers), body, secret), isRight));
  test("an empty secret opens nothing", () => {
    const empty = createHmac("sha256", "").update(body).digest("hex");
    equal(isSigned("github", new Headers({ "x-hub-signature-256": `sha256=${empty}` }), body, Buffer.alloc(0)), false);
    equal(isSigned("gitlab", new Headers({ "x-gitlab-token": "" }), body, Buffer.alloc(0)), false);
  });
});

test("the headers say which forge it is; Gitea's own go before those that it borrows", () => {
  const of = (headers: Record<string, string>) => headingOf(new Headers(headers))?.forge;
  equal(of({ "x-github-event": "push", "x-github-delivery": "1" }), "github");
  equal(
    of({ "x-github-event": "push", "x-github-delivery": "1", "x-gitea-event": "push", "x-gitea-delivery": "1" }),
    "gitea",
  );
  equal(of({ "x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "1" }), "gitlab");
  equal(of({ "x-github-event": "push" }), undefined);
  equal(of({ "x-github-event": "x".repeat(300), "x-github-delivery": "1" }), undefined);
});

test("a body is a JSON object, also in a form; anything else is none", () => {
  deepEqual(payloadIn("application/json", body), { a: 1 });
  deepEqual(payloadIn("application/x-www-form-urlencoded", Buffer.from(`payload=${encodeURIComponent('{"b":2}')}`)), {
    b: 2,
  });
  for (const text of ["", "[]", "1", "null", '"x"', "{", "[".repeat(100_000)])
    equal(payloadIn("application/json", Buffer.from(text)), undefined);
});

const meaning = (forge: Forge, event: string, fields: Fields): ForgeEvent | string => {
  const found = meaningOf({ forge, event, id: "1" }, fields);
  return "event" in found ? found.event : found.ignored;
};
const facts = (found: ForgeEvent | string): unknown => {
  if (typeof found === "string") return found;
  const { payload: _payload, ...rest } = found;
  return rest;
};

describe("what a delivery means", () => {
  const sender = { login: "ada" };
  test("push, tag and deletion", () => {
    const pushed = { ref: "refs/tags/v1", before: sha("0"), after: sha("b"), sender };
    deepEqual(facts(meaning("github", "push", pushed)), {
      name: "push",
      ref: "refs/tags/v1",
      sha: sha("b"),
      before: sha("0"),
      actor: "ada",
    });
    deepEqual(meaning("github", "push", { ref: "refs/heads/x", after: "HEAD" }), "the push names no commit");
    const created = { ref: "v1", ref_type: "tag", sender };
    deepEqual(facts(meaning("github", "create", created)), { name: "create", ref: "refs/tags/v1", actor: "ada" });
  });

  const pull = (head: unknown, more: Fields = {}): Fields => ({
    action: "synchronized",
    number: 3,
    pull_request: { number: 3, head: { ref: "t", sha: sha("c"), repo: head }, base: { ref: "main" } },
    repository: { id: 1, full_name: "a/b" },
    sender: { username: "bo" },
    ...more,
  });
  const isFork = (found: ForgeEvent | string): boolean | undefined =>
    typeof found === "string" ? undefined : found.pull?.isFork;
  test("CI-57: a pull request is a fork's unless the forge says that it is the repository's own", () => {
    equal(isFork(meaning("gitea", "pull_request", pull({ id: 1, full_name: "x/y" }))), false);
    equal(isFork(meaning("gitea", "pull_request", pull({ id: 2, full_name: "a/b" }))), true);
    equal(isFork(meaning("gitea", "pull_request", pull(null))), true);
    equal(
      isFork(meaning("gitea", "pull_request", pull({ full_name: "a/b" }, { repository: { full_name: "a/b" } }))),
      false,
    );
    const found = meaning("gitea", "pull_request", pull({ id: 1 }));
    deepEqual(typeof found === "string" || [found.action, found.actor, found.pull?.headRef, found.pull?.baseRef], [
      "synchronize",
      "bo",
      "t",
      "main",
    ]);
  });

  test("merge groups, dispatches and events of the default branch", () => {
    const group = {
      action: "checks_requested",
      merge_group: { head_ref: "refs/heads/q/1", head_sha: sha("d") },
      sender,
    };
    deepEqual(facts(meaning("github", "merge_group", group)), {
      name: "merge_group",
      action: "checks_requested",
      ref: "refs/heads/q/1",
      sha: sha("d"),
      actor: "ada",
    });
    const dispatched = { workflow: ".github/workflows/a.yml", ref: "refs/heads/main", inputs: { n: 2 }, sender };
    deepEqual(facts(meaning("github", "workflow_dispatch", dispatched)), {
      name: "workflow_dispatch",
      dispatch: { workflow: ".github/workflows/a.yml", ref: "refs/heads/main", inputs: { n: "2" } },
      actor: "ada",
    });
    deepEqual(facts(meaning("github", "issue_comment", { action: "created", sender })), {
      name: "issue_comment",
      action: "created",
      actor: "ada",
    });
    deepEqual(meaning("github", "star", {}), "no workflow runs on star");
  });

  test("GitLab's words become GitHub's", () => {
    const request = (more: Fields): Fields => ({
      user: { username: "kim" },
      project: { path_with_namespace: "a/b", default_branch: "main" },
      object_attributes: {
        iid: 9,
        source_branch: "t",
        target_branch: "main",
        source_project_id: 5,
        target_project_id: 5,
        last_commit: { id: sha("e") },
        ...more,
      },
    });
    const action = (more: Fields): unknown => {
      const found = meaning("gitlab", "Merge Request Hook", request(more));
      return typeof found === "string" ? found : [found.name, found.action, found.pull?.number, found.pull?.isFork];
    };
    deepEqual(action({ action: "open" }), ["pull_request", "opened", 9, false]);
    deepEqual(action({ action: "update", oldrev: sha("a") }), ["pull_request", "synchronize", 9, false]);
    deepEqual(action({ action: "update" }), ["pull_request", "edited", 9, false]);
    deepEqual(action({ action: "merge", source_project_id: 6 }), ["pull_request", "closed", 9, true]);
    deepEqual(action({ action: "approved" }), "no workflow runs on a merge request's approved");
    deepEqual(meaning("gitlab", "Pipeline Hook", {}), "no workflow runs on Pipeline Hook");
  });

  test("no body makes it throw: fields may be missing, of another kind, or named like an object's own", () => {
    const hostile: readonly Fields[] = [
      {},
      { pull_request: [], number: "1" },
      { pull_request: { head: null, base: 3 }, number: 1 },
      JSON.parse('{"__proto__":{"ref":"refs/heads/x"},"after":{"toString":1}}') as Fields,
      { object_attributes: { iid: Number.POSITIVE_INFINITY, last_commit: [] } },
      { merge_group: "x", inputs: [1], workflow: 7, ref: {} },
    ];
    const events = ["push", "create", "pull_request", "merge_group", "workflow_dispatch", "release", "delete"];
    for (const fields of hostile) {
      for (const event of events) ok(meaning("github", event, fields) !== undefined);
      for (const event of ["Push Hook", "Merge Request Hook"]) equal(typeof meaning("gitlab", event, fields), "string");
    }
  });
});
