/** What lines of a step come to: commands and what they report (CI-46 to CI-48). */
import { deepEqual, equal, ok } from "node:assert/strict";
import { tmpdir } from "node:os";
import { describe, test } from "node:test";
import type { Annotation, Report } from "#doors/ci/run/report.ts";
import { Masks } from "./mask.ts";
import { Matchers } from "./matchers.ts";
import { type OutputPorts, StepOutput } from "./step-output.ts";

function said(lines: readonly string[], more: Partial<OutputPorts> = {}) {
  const reports: Report[] = [];
  const output = new StepOutput({
    step: { number: 0, id: "s", name: "s", depth: 0 },
    masks: new Masks(),
    matchers: new Matchers(tmpdir()),
    report: (report) => reports.push(report),
    showsDebug: false,
    workspace: "/srv/space",
    allowsUnsecure: false,
    allowsAnyToken: false,
    ...more,
  });
  output.flush();
  const reader = output.reader();
  reader.push(Buffer.from(`${lines.join("\n")}\n`));
  reader.end();
  const texts = reports.flatMap((report) => (report.kind === "line" ? [`${report.level}: ${report.text}`] : []));
  const annotations = reports.flatMap((report) => (report.kind === "annotation" ? [report.annotation] : []));
  return { output, texts, annotations };
}

describe("commands of a step", () => {
  const table: readonly (readonly [properties: string, expected: Omit<Annotation, "level" | "message">])[] = [
    ["line=1,endLine=2,col=1,endColumn=2", { line: 1, endLine: 2 }],
    ["col=1,endColumn=2", {}],
    ["endLine=1", { line: 1, endLine: 1 }],
    ["line=1,endColumn=2", { line: 1, column: 2, endColumn: 2 }],
    ["line=,endLine=3", { line: 3, endLine: 3 }],
    ["line=4,endLine=3", {}],
    ["line=1,col=4,endColumn=3", { line: 1 }],
    ["line=1,endLine=1,col=2,endColumn=3", { line: 1, endLine: 1, column: 2, endColumn: 3 }],
    ["line=x,col=y", {}],
    ["file=/srv/space/src/a.js,line=1,title=T", { title: "T", file: "src/a.js", line: 1 }],
    ["file=/elsewhere/a.js", { file: "/elsewhere/a.js" }],
    ["FILE=a.js,Line=2", { file: "a.js", line: 2 }],
  ];
  for (const [properties, expected] of table)
    test(`CI-48: ::warning ${properties}::`, () => {
      deepEqual(said([`::warning ${properties}::w`]).annotations, [{ level: "warning", message: "w", ...expected }]);
    });

  test("CI-50: titles and files of annotations hide secrets as messages do", () => {
    const masks = new Masks();
    masks.add("hunter2");
    const [found] = said(["::error title=t-hunter2,file=src/hunter2.js,line=1::m hunter2"], { masks }).annotations;
    deepEqual(found, { level: "error", message: "m ***", title: "t-***", file: "src/***.js", line: 1 });
  });

  test("CI-48: ten annotations of a kind, and 4,096 characters of each", () => {
    const lines = Array.from({ length: 12 }, () => `::error::${"x".repeat(5000)}`);
    const { annotations, texts } = said([...lines, "::notice::n"]);
    deepEqual([annotations.length, annotations[0]?.message.length, texts.length], [11, 4096, 13]);
  });

  test("CI-46: what is missing or not allowed fails the step, and says so", () => {
    const wrong: readonly (readonly [line: string, why: RegExp])[] = [
      ["::set-output::x", /Required field 'name' is missing in ##\[set-output\] command/],
      ["::save-state name=::x", /'name' is missing in ##\[save-state\]/],
      ["::set-env name=A::x", /`set-env` command is disabled/],
      ["::add-path::/x", /`add-path` command is disabled/],
      ["::echo::maybe", /Invalid echo command value.*'maybe'/],
      ["::add-matcher::nowhere.json", /no such file/],
      ["::stop-commands::error", /Invalid token 'error'/],
    ];
    for (const [line, why] of wrong) {
      const { output, texts } = said([line]);
      ok(output.hasFailedCommand, line);
      ok(
        texts.some((text) => why.test(text)) && texts.some((text) => text.includes("Unable to process command")),
        line,
      );
    }
    for (const line of ["::add-mask::", "::add-matcher::", "::remove-matcher::", "::debug::x", "::group::"])
      equal(said([line]).output.hasFailedCommand, false, line);
  });

  test("CI-46: set-env and add-path where the author allows them, but never NODE_OPTIONS", () => {
    const lines = ["::set-env name=A::1", "::add-path::/x", "::set-env name=node_options::--x"];
    const { output, texts } = said(lines, { allowsUnsecure: true });
    deepEqual([[...output.effects.env], output.effects.paths], [[["A", "1"]], ["/x"]]);
    ok(
      !output.hasFailedCommand && texts.some((text) => text.includes("Can't update node_options environment variable")),
    );
  });

  test("CI-47: a pause lasts until its token, in either form, and the token is hidden", () => {
    for (const end of ["::Some-Token::", "##[some-token]"]) {
      const { texts, output } = said([
        "::stop-commands::some-token",
        "::set-output name=a::1",
        end,
        "::set-output name=b::2",
      ]);
      deepEqual([...output.effects.outputs], [["b", "2"]]);
      ok(texts.includes("plain: ::set-output name=a::1"));
      ok(texts.every((text) => !text.includes("some-token")));
    }
    const open = said(["::stop-commands::", "::set-output name=a::1"], { allowsAnyToken: true });
    deepEqual([open.output.hasFailedCommand, open.output.effects.outputs.size], [false, 0]);
  });

  test("CI-46: echo shows commands, and masks only by their name", () => {
    const lines = [
      "::echo::ON",
      "::set-output name=a::1",
      "::add-mask::secret-word",
      "::echo::Off  ",
      "::set-output name=b::2",
    ];
    deepEqual(said(lines).texts, ["command: ::set-output name=a::1", "command: ::add-mask::***"]);
    deepEqual(said(["::set-output name=a::1"], { showsDebug: true }).texts, ["command: ::set-output name=a::1"]);
  });
});
