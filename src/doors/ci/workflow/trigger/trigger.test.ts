import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import { PatternFault, patternMatches, patternsAccept } from "./pattern.ts";
import { type EventFacts, triggered } from "./trigger.ts";

function runs(on: string, event: EventFacts): boolean {
  const compiled = compile({ path: "w.yml", text: `on:\n  ${on}\njobs: { a: { runs-on: x } }` });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  return triggered(compiled.workflow.on, event).runs;
}

const push = (ref: string, more: Partial<EventFacts> = {}): EventFacts => ({ name: "push", ref, ...more });

describe("patterns", () => {
  const table: readonly (readonly [pattern: string, matching: readonly string[], others: readonly string[]])[] = [
    ["feature/*", ["feature/a", "feature/your-branch"], ["feature/a/b", "feature", "x/feature/a"]],
    ["feature/**", ["feature/a", "feature/a/b"], ["features/a"]],
    ["**", ["a", "a/b/c"], []],
    ["*", ["main", "releases"], ["all/the/branches"]],
    ["**feature", ["mona-feature", "ver-10-feature", "a/feature"], ["feature-x"]],
    ["v2*", ["v2", "v2.0", "v2.9"], ["v1"]],
    ["v[12].[0-9]+.[0-9]+", ["v1.10.1", "v2.0.0"], ["v3.0.0", "v1.1"]],
    ["*.jsx?", ["page.js", "page.jsx"], ["a/page.js"]],
    ["**/README.md", ["README.md", "js/README.md"], ["README.md/x"]],
    ["docs/**/*.md", ["docs/README.md", "docs/a/b.md"], ["a/docs/b.md"]],
    ["**/*src/**", ["a/src/app.js", "my-src/code/a.js"], ["src-a"]],
    ["\\*.md", ["*.md"], ["a.md"]],
    ["a.b", ["a.b"], ["axb", "A.B"]],
  ];
  for (const [pattern, matching, others] of table)
    test(`CI-54: ${pattern}`, () => {
      for (const name of matching) equal(patternMatches(pattern, name), true, name);
      for (const name of others) equal(patternMatches(pattern, name), false, name);
    });

  test("CI-53: in order, ! takes out again, and a later pattern takes in again", () => {
    const patterns = ["releases/**", "!releases/**-alpha", "releases/1-alpha"];
    deepEqual(
      ["releases/10", "releases/2-alpha", "releases/1-alpha"].map((name) => patternsAccept(patterns, name)),
      [true, false, true],
    );
    equal(patternsAccept(["!a"], "b"), false);
  });

  test("a pattern that cannot be read, or is too long, is refused", () => {
    throws(() => patternMatches("a[z-a]", "x"), PatternFault);
    throws(() => patternMatches("x".repeat(2000), "x"), PatternFault);
  });
});

describe("triggers", () => {
  test("CI-53: branches or tags, and paths as well", () => {
    equal(runs("push: { branches: [main] }", push("refs/heads/main")), true);
    equal(runs("push: { branches: [main] }", push("refs/heads/other")), false);
    equal(runs("push: { branches: [main] }", push("refs/tags/v1")), false);
    equal(runs("push: { tags: [v*] }", push("refs/heads/main")), false);
    equal(runs("push: { tags: [v*] }", push("refs/tags/v1")), true);
    equal(runs("push: { branches: [main], tags: [v*] }", push("refs/tags/v1")), true);
    equal(runs("push: { branches-ignore: [wip/**] }", push("refs/heads/wip/a")), false);
    equal(
      runs("push: { branches: [main], paths: ['src/**'] }", push("refs/heads/main", { changedFiles: ["docs/a"] })),
      false,
    );
    equal(
      runs(
        "push: { branches: [main], paths: ['src/**'] }",
        push("refs/heads/main", { changedFiles: ["docs/a", "src/b"] }),
      ),
      true,
    );
    equal(
      runs("push: { paths-ignore: ['**.md'] }", push("refs/heads/main", { changedFiles: ["a.md", "b/c.md"] })),
      false,
    );
    equal(runs("push: { paths-ignore: ['**.md'] }", push("refs/heads/main", { changedFiles: ["a.md", "b.ts"] })), true);
  });

  test("CI-55: files that could not be found out let it run, and only 3,000 are looked at", () => {
    equal(runs("push: { paths: ['src/**'] }", push("refs/heads/main")), true);
    const many = [...Array.from({ length: 3000 }, (_, at) => `docs/${at}`), "src/late"];
    equal(runs("push: { paths: ['src/**'] }", push("refs/heads/main", { changedFiles: many })), false);
    equal(runs("push: { paths: ['src/**'] }", push("refs/tags/v1", { changedFiles: ["docs/a"] })), true);
  });

  test("CI-56: pull requests have three types unless they say others, and filter by their base", () => {
    const event = (action: string): EventFacts => ({
      name: "pull_request",
      action,
      ref: "refs/heads/topic",
      baseRef: "refs/heads/main",
    });
    deepEqual(
      ["opened", "synchronize", "reopened", "closed"].map((action) => runs("pull_request:", event(action))),
      [true, true, true, false],
    );
    equal(runs("pull_request: { types: [closed] }", event("closed")), true);
    equal(runs("pull_request: { branches: [main] }", event("opened")), true);
    equal(runs("pull_request: { branches: [topic] }", event("opened")), false);
  });

  test("CI-59: five spellings skip pushes and pull requests, and nothing else", () => {
    for (const words of ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]"])
      equal(runs("push:", push("refs/heads/main", { message: `fix ${words}` })), false);
    equal(runs("push:", push("refs/heads/main", { message: "fix\n\nskip-checks: true\n" })), false);
    equal(runs("workflow_dispatch:", { name: "workflow_dispatch", message: "[skip ci]" }), true);
  });

  test("an event that the workflow does not name never starts it", () => {
    equal(runs("push:", { name: "constructor" }), false);
    equal(
      runs("workflow_run: { workflows: [CI], types: [completed] }", {
        name: "workflow_run",
        action: "completed",
        workflowName: "Other",
      }),
      false,
    );
  });
});
