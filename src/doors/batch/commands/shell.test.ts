import { deepEqual, equal } from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { describe, test } from "node:test";
import type { ExitCode } from "#door/command.ts";
import { shell, splitQueries, type ShellHow } from "./shell.ts";

describe("the shell", () => {
  test("finds queries by their semicolons", () => {
    deepEqual(splitQueries("select 1; select ';' ; select"), { queries: ["select 1", "select ';'"], rest: " select" });
    deepEqual(splitQueries("select 'it''s;\n"), { queries: [], rest: "select 'it''s;\n" });
    deepEqual(splitQueries('select ";" -- no; end\n;'), { queries: ['select ";" -- no; end'], rest: "" });
    deepEqual(splitQueries("select /* ; */ 1;;\n"), { queries: ["select /* ; */ 1"], rest: "" });
    deepEqual(splitQueries("select $$a;b$$, $x$;$x$;"), { queries: ["select $$a;b$$, $x$;$x$"], rest: "" });
    deepEqual(splitQueries("select /* ;"), { queries: [], rest: "select /* ;" });
  });

  type Ran = { readonly sql: string } & ShellHow;
  async function script(
    text: string,
    answer: (sql: string) => ExitCode = () => 0,
  ): Promise<{ code: ExitCode; ran: Ran[]; notes: string[] }> {
    const ran: Ran[] = [];
    const notes: string[] = [];
    const code = await shell({
      world: { out() {}, note: (line) => void notes.push(line) },
      isTerminal: false,
      input: Readable.from([text]),
      output: new PassThrough(),
      async run(sql, how) {
        ran.push({ sql, ...how });
        return answer(sql);
      },
    });
    return { code, ran, notes };
  }

  test("runs a script, and ends it with the first query that fails", async () => {
    const { code, ran } = await script("select 1;\n.json on\nselect\n 2; .explain select 3;\nselect 4");
    equal(code, 0);
    deepEqual(ran, [
      { sql: "select 1", json: false, explain: false },
      { sql: "select\n 2", json: true, explain: false },
      { sql: "select 3", json: true, explain: true },
      { sql: "select 4", json: true, explain: false },
    ]);
    const failed = await script("select 1; select 2; select 3;", (sql) => (sql === "select 2" ? 1 : 0));
    deepEqual([failed.code, failed.ran.length], [1, 2]);
  });

  test("ends with .quit, and helps", async () => {
    const { ran, notes } = await script(".help\n.quit\nselect 1;\n");
    equal(ran.length, 0);
    equal(
      notes.some((line) => line.includes(".explain")),
      true,
    );
  });
});
