import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Masks, MaskStream } from "./mask.ts";

function masked(secrets: readonly string[], text: string): string {
  const masks = new Masks();
  for (const secret of secrets) masks.add(secret);
  return masks.mask(text);
}

describe("masks", () => {
  test("CI-50: the value in every form", () => {
    const secret = `p&ss"w<o>r'd/+=ä`;
    const forms: readonly string[] = [
      secret,
      secret.replaceAll('"', '\\"'),
      JSON.stringify(secret),
      encodeURIComponent(secret),
      secret.replaceAll("'", "''"),
      "p&amp;ss&quot;w&lt;o&gt;r&apos;d/+=ä",
      Buffer.from(secret).toString("base64"),
      Buffer.from(secret).toString("base64url"),
      Buffer.from(`x${secret}yz`).toString("base64"),
      Buffer.from(`user:${secret}`).toString("base64"),
      Buffer.from(`ab${secret}`).toString("base64"),
    ];
    for (const form of forms) ok(masked([secret], `<${form}>`).includes("***"), form);
  });

  test("CI-50: each line of a secret of many lines, and quotes around one", () => {
    equal(masked(["first line\n  second line\n"], "a second line b first line"), "a *** b ***");
    equal(masked(['"quoted-value"'], "it is quoted-value"), "it is ***");
    equal(masked(["abcdef&ghijkl"], "abcdef and ghijkl"), "*** and ***");
  });

  test("CI-50: what overlaps is hidden once", () => {
    equal(masked(["abcd", "cdef"], "xabcdefx"), "x***x");
    equal(masked(["abc", "abcdef"], "abcdef abc"), "*** ***");
  });

  test("CI-51: a brace of a JSON secret is no secret, a value in it is", () => {
    const secret = '{\n  "user": "me-myself",\n  "key": "k-12345"\n}';
    equal(masked([secret], "{ k-12345 }"), "{ *** }");
    const masks = new Masks();
    equal(masks.add("ab"), false);
    equal(masks.mask("ab"), "ab");
  });

  test("a secret cut into pieces is hidden as if it came whole, and the secret never shows", () => {
    const secret = fc.string({ minLength: 4, maxLength: 12, unit: fc.constantFrom("a", "b", "c", "é") });
    const text = fc.string({ maxLength: 60, unit: fc.constantFrom("a", "b", "c", "é", " ") });
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.array(text, { maxLength: 6 }),
        fc.nat(),
        (secrets, texts, cut) => {
          const whole = texts.join(secrets[cut % secrets.length] ?? "");
          const masks = new Masks();
          for (const one of secrets) masks.add(one);
          const stream = new MaskStream(masks);
          const pieces = whole.match(new RegExp(`.{1,${(cut % 5) + 1}}`, "gsu")) ?? [];
          const shown = pieces.map((piece) => stream.push(piece)).join("") + stream.end();
          equal(shown, masks.mask(whole));
          for (const one of secrets) ok(!shown.includes(one));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("ten thousand secrets cost no more per line than ten", () => {
    const many = new Masks();
    for (let at = 0; at < 2000; at += 1) many.add(`secret-number-${at}-value`);
    ok(many.size > 10_000);
    const line = `${"nothing to see here ".repeat(50_000)}secret-number-1234-value`;
    many.mask("build the automaton");
    const startedMs = performance.now();
    ok(many.mask(line).endsWith("***"));
    ok(performance.now() - startedMs < 5000, "a megabyte takes seconds only when each secret is looked for by itself");
  });

  test("text that may still become a secret is held back, and no more than that", () => {
    const masks = new Masks();
    masks.add("secret");
    const stream = new MaskStream(masks);
    deepEqual(
      [stream.push("a sec"), stream.push("ond sec"), stream.push("ret."), stream.end()],
      ["a ", "second ", "***.", ""],
    );
  });
});
