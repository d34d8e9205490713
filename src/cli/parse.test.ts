import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { parseLine } from "./parse.ts";
import { wholeTable } from "./table.ts";

const table = await wholeTable();

/** As a shell would: what is in double quotes is one word. */
const words = (line: string): string[] =>
  (line.match(/"[^"]*"|[^ ]+/g) ?? []).map((word) => word.replace(/^"(.*)"$/, "$1"));
const parse = (line: string) => parseLine(words(line), table);
const said = (line: string): string => {
  const parsed = parse(line);
  return parsed.kind === "wrong" ? `${parsed.problem} | ${parsed.next}` : parsed.kind;
};

describe("a command line", () => {
  test("is a command, its words, its flags and what follows --", () => {
    const parsed = parse("job submit --tenant t --follow -- make --json all");
    equal(parsed.kind, "run");
    if (parsed.kind !== "run") return;
    equal(parsed.command.name, "job submit");
    deepEqual(parsed.invocation, {
      positionals: [],
      rest: ["make", "--json", "all"],
      values: { tenant: "t", follow: true },
    });
    const other = parse("job show j0-1 --json");
    deepEqual(other.kind === "run" && other.invocation.positionals, ["j0-1"]);
  });

  test("that is mistyped is answered with the line that was meant", () => {
    equal(said("job sumbit"), 'there is no command "job sumbit" | millrace job submit');
    equal(said("jbo list"), 'there is no command "jbo list" | millrace job list');
    equal(said("submit"), 'there is no command "submit" | millrace job submit');
    equal(said("ndoes"), 'there is no command "ndoes" | millrace nodes');
    equal(said("frobnicate"), 'there is no command "frobnicate" | millrace help');
    equal(said("cache --help"), "help");
    equal(
      said("job"),
      "job: say what to do: submit, list, show, watch, logs, results, cancel, rerun, why, signal | millrace help",
    );
  });

  test("with a wrong flag says which, and never guesses", () => {
    equal(said("job list --jsno"), "job list: there is no flag --jsno; did you mean --json? | millrace help job list");
    equal(said("job list --limit"), "job list: --limit needs a value: --limit NUMBER | millrace help job list");
    equal(said("job list --json=yes"), "job list: --json takes no value | millrace help job list");
    equal(said("nodes extra"), 'nodes: what is "extra"? It takes no words | millrace help nodes');
    equal(said("nodes -- x"), "nodes: takes nothing behind -- | millrace help nodes");
  });

  test("may ask for help anywhere before --", () => {
    equal(parse("job list --help").kind, "help");
    equal(parse("-h").kind, "help");
    equal(parse("--version").kind, "version");
    equal(parse("job submit -- man --help").kind, "run");
  });
});

test("the table is consistent: names differ, examples parse, every command that answers has --json", () => {
  equal(new Set(table.map(({ name }) => name)).size, table.length);
  for (const { name, examples, flags, about } of table) {
    for (const example of examples) {
      const words = example.replaceAll(/'([^']*)'/g, (_, quoted: string) => quoted.replaceAll(" ", "_"));
      const line = words.replace(/^millrace /, "").replace(/ < \S+$/, ""); // the shell's part
      equal(parse(line).kind, "run", example);
    }
    equal(about.endsWith("."), true, name);
    if (name !== "bench") equal("json" in flags, true, `${name} has no --json`);
  }
});
