/** The job graph by transcripts: what starts, what is skipped and why, as results come in. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import { Dictionary, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { type CellEnd, type GraphAction, JobGraph } from "./graph.ts";
import type { Frame } from "./job-plan.ts";

function frameOf(text: string, vars: Readonly<Record<string, string>> = {}): Frame {
  const compiled = compile({ path: "w.yml", text });
  ok(compiled.ok, compiled.ok ? "" : JSON.stringify(compiled.problems));
  return {
    workflow: compiled.workflow,
    github: valueOf({ ref: "refs/heads/main", event_name: "push" }) as Dictionary,
    vars: new Dictionary(Object.entries(vars)),
    inputs: new Dictionary(),
  };
}

const jobs = (lines: Readonly<Record<string, string>>): string =>
  `on: push\njobs:\n${Object.entries(lines)
    .map(
      ([id, line]) =>
        `  ${id}:\n    runs-on: x\n    steps: [{ run: echo }]\n${line === "" ? "" : line.replaceAll(/^/gm, "    ")}`,
    )
    .join("\n")}\n`;

const shown = (action: GraphAction): string => {
  if (action.kind === "start" || action.kind === "cancel") return `${action.kind} ${action.cell.name}`;
  return action.kind === "skip" ? `skip ${action.job.id}: ${action.why}` : `fail ${action.job.id}: ${action.message}`;
};

const next = (graph: JobGraph): readonly string[] => graph.next().map((action) => shown(action));

const end = (graph: JobGraph, jobId: string, result: CellEnd["result"] = "success", index = 0, outputs = {}): void =>
  graph.ended({ jobId, index, result, outputs: new Map(Object.entries(outputs)) });

describe("job graph", () => {
  test("a job starts when all it needs has ended", () => {
    const graph = new JobGraph(frameOf(jobs({ a: "", b: "", c: "needs: [a, B]" })));
    deepEqual(next(graph), ["start a", "start b"]);
    end(graph, "a");
    deepEqual(next(graph), []);
    end(graph, "b");
    deepEqual(next(graph), ["start c"]);
    end(graph, "c");
    equal(graph.result, "success");
  });

  test("CI-3, CI-5: a skipped grandparent skips a job whose own need succeeded, and skipped counts as passing", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "if: false", b: "needs: a\nif: always()", c: "needs: b", d: "needs: b\nif: success('b')" })),
    );
    deepEqual(next(graph), ["skip a: if: false is false", "start b"]);
    end(graph, "b");
    deepEqual(next(graph), ["skip c: if: success() is false (a was skipped)", "start d"]);
    end(graph, "d");
    equal(graph.result, "success");
  });

  test("CI-3: failure() looks at all ancestors, always() at none", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "", b: "needs: a", c: "needs: b\nif: failure()", d: "needs: b\nif: always()" })),
    );
    next(graph);
    end(graph, "a", "failure");
    deepEqual(next(graph), ["skip b: if: success() is false (a was unsuccessful)", "start c", "start d"]);
    end(graph, "c");
    end(graph, "d");
    equal(graph.result, "failure");
  });

  test("CI-4: needs has the direct ones only, with result and outputs", () => {
    const graph = new JobGraph(
      frameOf(
        jobs({
          a: "",
          b: "needs: a\nif: needs.a.outputs.go == 'yes'",
          c: "needs: b\nif: needs.a.result == null && needs.b.result == 'success'",
        }),
      ),
    );
    next(graph);
    end(graph, "a", "success", 0, { go: "yes" });
    deepEqual(next(graph), ["start b"]);
    end(graph, "b");
    deepEqual(next(graph), ["start c"]);
  });

  test("CI-6, CI-10: the condition comes before the matrix, and an error in either fails the job", () => {
    const graph = new JobGraph(
      frameOf(
        jobs({
          a: "if: false\nstrategy: { matrix: { x: '${{ fromJSON(vars.bad) }}' } }",
          b: "strategy: { matrix: { x: '${{ fromJSON(vars.bad) }}' } }",
        }),
        { bad: "[" },
      ),
    );
    const [skipped, failed] = next(graph);
    equal(skipped, "skip a: if: false is false");
    ok(failed?.startsWith("fail b: (Line: 11, Col: 30): Error parsing fromJson"));
    equal(graph.result, "failure");
  });

  test("CI-9: a job that may fail counts as successful for those after it", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "continue-on-error: true", b: "needs: a\nif: needs.a.result == 'success'" })),
    );
    next(graph);
    end(graph, "a", "failure");
    deepEqual(next(graph), ["start b"]);
    end(graph, "b");
    equal(graph.result, "success");
  });

  test("CI-19: a matrix may come from the outputs of another job", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "", b: "needs: a\nstrategy: { matrix: '${{ fromJSON(needs.a.outputs.m) }}' }" })),
    );
    next(graph);
    end(graph, "a", "success", 0, { m: '{"x":[1,2]}' });
    deepEqual(next(graph), ["start b (1)", "start b (2)"]);
  });

  test("CI-20: a failing cell stops its siblings, unless it may fail or they said otherwise", () => {
    const strategy = (more: string): string => `strategy: { matrix: { x: [1, 2, 3, 4] }, max-parallel: 2${more} }`;
    const graph = new JobGraph(frameOf(jobs({ a: strategy("") })));
    deepEqual(next(graph), ["start a (1)", "start a (2)"]);
    end(graph, "a", "failure", 0);
    deepEqual(next(graph), ["cancel a (2)"]);
    deepEqual(next(graph), []);
    end(graph, "a", "cancelled", 1);
    equal(graph.result, "failure");
    const patient = new JobGraph(frameOf(jobs({ a: strategy(", fail-fast: false") })));
    next(patient);
    end(patient, "a", "failure", 0);
    deepEqual(next(patient), ["start a (3)"]);
    const allowed = new JobGraph(frameOf(jobs({ a: `${strategy("")}\ncontinue-on-error: \${{ matrix.x == 1 }}` })));
    next(allowed);
    end(allowed, "a", "failure", 0);
    deepEqual(next(allowed), ["start a (3)"]);
  });

  test("CI-20: of the cells' outputs the last to end wins, key by key", () => {
    const graph = new JobGraph(
      frameOf(
        jobs({
          a: "strategy: { matrix: { x: [1, 2] } }",
          b: "needs: a\nif: needs.a.outputs.k == 'first' && needs.a.outputs.only == '2'",
        }),
      ),
    );
    next(graph);
    end(graph, "a", "success", 1, { k: "second", only: "2" });
    end(graph, "a", "success", 0, { k: "first", only: "" });
    deepEqual(next(graph), ["start b"]);
  });

  test("CI-11: after a cancel only jobs whose condition still holds go on or start", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "", b: "if: always()", c: "needs: [a, b]", d: "needs: [a, b]\nif: cancelled()" })),
    );
    next(graph);
    graph.cancel();
    deepEqual(next(graph), ["cancel a"]);
    end(graph, "a", "cancelled");
    end(graph, "b");
    deepEqual(next(graph), ["skip c: if: success() is false (the run was cancelled)", "start d"]);
    end(graph, "d");
    equal(graph.result, "cancelled");
  });

  test("an end that is told twice counts once", () => {
    const graph = new JobGraph(frameOf(jobs({ a: "" })));
    next(graph);
    end(graph, "a", "success");
    end(graph, "a", "failure");
    equal(graph.result, "success");
  });

  test("CI-72: labels are a text, a list or a group with labels", () => {
    const graph = new JobGraph(
      frameOf(jobs({ a: "" }).replace("runs-on: x", "runs-on: { group: g, labels: [A, '${{ vars.l }}'] }"), { l: "b" }),
    );
    const [start] = graph.next();
    ok(start?.kind === "start");
    deepEqual([start.cell.labels, start.cell.group], [["A", "b"], "g"]);
  });
});
