/** What steps say by files and by lines. */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { commandIn, endsPause, isTokenRefused } from "./command-line.ts";
import { isEnvRefused, pairsIn, pathsIn, withPaths } from "./file-commands.ts";
import { LineReader, type Piece } from "#doors/ci/run/printed/lines.ts";
import { shellCommand, defaultShell } from "#doors/ci/run/shells.ts";

describe("file commands", () => {
  const pairs = (text: string): unknown => [...pairsIn(text)].map(({ name, value }) => [name, value]);

  test("CI-42: a line, or lines up to a word", () => {
    deepEqual(pairs("A=1\n\nB=x=y\nC=\n"), [
      ["A", "1"],
      ["B", "x=y"],
      ["C", ""],
    ]);
    deepEqual(pairs("A<<END\none\n\n two\nEND\nB=2"), [
      ["A", "one\n\n two"],
      ["B", "2"],
    ]);
    deepEqual(pairs("A=x<<y"), [["A", "x<<y"]]);
    deepEqual(pairs("A<<E=F\nv\nE=F"), [["A", "v"]]);
    deepEqual(pairs("A=1\r\n"), [["A", "1\r"]]);
    deepEqual(pairs("A<<E\nE"), [["A", ""]]);
    deepEqual(pairs("A=1\nA=2"), [
      ["A", "1"],
      ["A", "2"],
    ]);
  });

  test("CI-42: what is neither is an error", () => {
    for (const text of ["word", "=value", "<<END\nEND", "A<<\nx", "A<<END\nnever ends"])
      throws(() => [...pairsIn(text)], /Invalid/);
  });

  test("CI-42: what comes before a line that cannot be read counts, and odd delimiters are delimiters", () => {
    const read: unknown[] = [];
    throws(() => {
      for (const { name, value } of pairsIn("A=1\nnonsense\nB=2")) read.push([name, value]);
    }, /Invalid format 'nonsense'/);
    deepEqual(read, [["A", "1"]]);
    deepEqual(pairs("A==abc\nB=def=ghi\nC=jkl="), [
      ["A", "=abc"],
      ["B", "def=ghi"],
      ["C", "jkl="],
    ]);
    deepEqual(pairs("A<<=EOF\nhello\none\n=EOF\nB<<<EOF\nhello\ntwo\n<EOF\nC<<EOF\nhello\n\nthree\n\nEOF"), [
      ["A", "hello\none"],
      ["B", "hello\ntwo"],
      ["C", "hello\n\nthree\n"],
    ]);
    deepEqual(pairs("A<<EOF\nhello=four\nEOF\nB<<EOF\n EOF\nEOF"), [
      ["A", "hello=four"],
      ["B", " EOF"],
    ]);
  });

  test("CI-43: NODE_OPTIONS stays, and later paths come first", () => {
    ok(isEnvRefused("NODE_OPTIONS") && isEnvRefused("node_options") && !isEnvRefused("NODE_ENV"));
    deepEqual(withPaths(["/a", "/b"], ["/c", "/b"]), ["/b", "/c", "/a"]);
    deepEqual(pathsIn("/x\r\n\n/y\n"), ["/x", "/y"]);
  });
});

describe("commands in lines", () => {
  test("CI-45: both forms, with what is escaped", () => {
    deepEqual(commandIn("::error file=a%2Cb.js,line=1,title=%3A::one%0Atwo%25"), {
      name: "error",
      properties: { file: "a,b.js", line: "1", title: ":" },
      data: "one\ntwo%",
    });
    deepEqual(commandIn("  ::debug::x"), { name: "debug", properties: {}, data: "x" });
    deepEqual(commandIn("some text ##[add-matcher owner=x;b=1%3B]path"), {
      name: "add-matcher",
      properties: { owner: "x", b: "1;" },
      data: "path",
    });
    deepEqual(commandIn("::set-output name=a::b::c")?.data, "b::c");
    deepEqual(commandIn("##[group]Title")?.data, "Title");
  });

  const table: readonly (readonly [line: string, properties: Readonly<Record<string, string>>, data: string])[] = [
    ["##[error file=v1;]msg", { file: "v1" }, "msg"],
    ["##[error]", {}, ""],
    ["##[error file=%3B=%0D=%0A=%5D;]%3B-%0D-%0A-%5D", { file: ";=\r=\n=]" }, ";-\r-\n-]"],
    ["##[error file=%253B=%250D=%250A=%255D;]%253B-%250D-%250A-%255D", { file: "%3B=%0D=%0A=%5D" }, "%3B-%0D-%0A-%5D"],
    ["##[error file=;line=;]", {}, ""],
    [">>>   ##[error file=v1;]msg", { file: "v1" }, "msg"],
    ["::error file=v1,::msg", { file: "v1" }, "msg"],
    ["::error::", {}, ""],
    ["::error file=;=%2C=%0D=%0A=]=%3A,::;-%0D-%0A-]-:-,", { file: ";=,=\r=\n=]=:" }, ";-\r-\n-]-:-,"],
    [
      "::error file=;=%252C=%250D=%250A=]=%253A,::;-%250D-%250A-]-:-,",
      { file: ";=%2C=%0D=%0A=]=%3A" },
      ";-%0D-%0A-]-:-,",
    ],
    ["::error file=,line=,::", {}, ""],
    ["   ::error file=v1,::msg", { file: "v1" }, "msg"],
  ];
  for (const [line, properties, data] of table)
    test(`CI-45: ${line}`, () => deepEqual(commandIn(line), { name: "error", properties, data }));

  test("CI-45: the newer form stands alone in its line", () => {
    equal(commandIn("   >>>   ::error file=v1,::msg"), undefined);
  });

  test("CI-46: what is no command is text", () => {
    for (const line of ["::unknown::x", "a ::error::x", "::error", "std::vector<int>::iterator", "##[nothing]x"])
      equal(commandIn(line), undefined, line);
  });

  test("CI-47: a token must be hard to guess", () => {
    ok(endsPause("::abc::", "abc") && !endsPause("::abcd::", "abc") && !endsPause("abc", "abc"));
    ok(endsPause("##[ABC]", "abc") && endsPause("  ::abc::rest", "abc") && !endsPause("x ::abc::", "abc"));
    deepEqual(
      ["", "error", "Pause-Logging", "f3a9"].map((token) => isTokenRefused(token)),
      [true, true, true, false],
    );
  });
});

describe("shells", () => {
  test("CI-39: the exact flags", () => {
    const line = (shell: string): string => {
      const { program, args } = shellCommand(shell, "/s");
      return [program, ...args].join(" ");
    };
    equal(line("bash"), "bash --noprofile --norc -e -o pipefail /s");
    equal(line("sh"), "sh -e /s");
    equal(line("python"), "python /s");
    equal(line("pwsh"), "pwsh -command . '/s'");
    equal(line("bash {0}"), "bash /s");
    equal(line('perl -e "a b" {0}'), "perl -e a b /s");
    deepEqual([defaultShell("/s", true).args, defaultShell("/s", false).program], [["-e", "/s"], "sh"]);
    equal(shellCommand("pwsh", "/s").extension, ".ps1");
    ok(shellCommand("pwsh", "/s").prepare("x").startsWith("$ErrorActionPreference = 'stop'\nx\n"));
    throws(() => shellCommand("fish", "/s"), /not known/);
    throws(() => shellCommand("node -e 1", "/s"), /has no \{0\}/);
  });
});

describe("lines", () => {
  const read = (...chunks: readonly Uint8Array[]): readonly Piece[] => {
    const pieces: Piece[] = [];
    const reader = new LineReader((piece) => pieces.push(piece));
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
    return pieces;
  };

  test("bytes that are cut anywhere, or are no text, become lines", () => {
    const bytes = Buffer.from("grüße\r\nzwei\nohne Ende");
    const expected = ["grüße", "zwei", "ohne Ende"].map((text) => ({ text, isEnd: true }));
    for (let at = 0; at <= bytes.length; at += 1) deepEqual(read(bytes.subarray(0, at), bytes.subarray(at)), expected);
    deepEqual(read(Buffer.from([0xff, 0x41, 0x0a])), [{ text: "\ufffdA", isEnd: true }]);
  });

  test("ten megabytes without a line end come in pieces", () => {
    const pieces = read(Buffer.alloc(10 * 1024 * 1024, "x"));
    ok(pieces.every(({ text }) => text.length <= 64 * 1024));
    equal(
      pieces.reduce((sum, { text }) => sum + text.length, 0),
      10 * 1024 * 1024,
    );
    deepEqual(pieces.filter(({ isEnd }) => isEnd).length, 1);
  });
});
