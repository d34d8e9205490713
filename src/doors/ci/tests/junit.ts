/**
 * Reads JUnit reports, the XML that test runners of all languages write. Pure. Reports come from jobs, so from
 * anyone: there are no entities but the five of XML and numbers, no document types, and depth, counts and lengths are
 * bounded.
 */
import { Fault } from "#base/fault.ts";

export type Outcome = "passed" | "failed" | "skipped";

export type TestCase = {
  readonly suite: string;
  readonly name: string;
  readonly outcome: Outcome;
  readonly ms: number;
  /** What a failure says, cut. */
  readonly message?: string;
  readonly file?: string;
  /** It failed and passed in this report alone: the runner tried it again. */
  readonly isFlaky?: true;
};

export const reportBytesMax = 16 * 1024 * 1024;
const depthMax = 64;
const casesMax = 50_000;
const nameMax = 300;
const messageMax = 500;
const attributesMax = 50;

const invalid = (why: string, at?: number): Fault => new Fault("invalid", "read a JUnit report", { why, at });

type Attributes = ReadonlyMap<string, string>;
type Open = { readonly name: string; readonly suite: string };
type Draft = { -readonly [K in keyof TestCase]: TestCase[K] };

export function readJunit(text: string): readonly TestCase[] {
  if (text.length > reportBytesMax) throw invalid(`it is longer than ${reportBytesMax} characters`);
  const cases: TestCase[] = [];
  const open: Open[] = [];
  let current: Draft | undefined;
  let hasRoot = false;
  for (const { kind, name, attributes, at } of tagsIn(text)) {
    if (kind === "close") {
      if (open.pop()?.name !== name) throw invalid(`</${name.slice(0, 50)}> closes nothing`, at);
      if (name === "testcase" && current) {
        cases.push(current);
        current = undefined;
      }
      continue;
    }
    if (open.length === 0 && hasRoot) throw invalid("there is more than one root", at);
    if (open.length === 0 && name !== "testsuites" && name !== "testsuite")
      throw invalid("its root is neither testsuites nor testsuite", at);
    hasRoot = true;
    if (open.length >= depthMax) throw invalid(`it is more than ${depthMax} elements deep`, at);
    const suite = name === "testsuite" ? cut(attributes.get("name") ?? "", nameMax) : (open.at(-1)?.suite ?? "");
    if (name === "testcase") {
      if (current) throw invalid("a test case is in another one", at);
      if (cases.length >= casesMax) throw invalid(`it has more than ${casesMax} test cases`, at);
      current = caseOf(attributes, suite);
    } else if (current) tell(current, name, attributes);
    open.push({ name, suite });
    if (kind === "empty") {
      open.pop();
      if (name === "testcase" && current) {
        cases.push(current);
        current = undefined;
      }
    }
  }
  if (open.length > 0) throw invalid(`it ends within <${open.at(-1)?.name}>`);
  if (!hasRoot) throw invalid("it has no element");
  return cases;
}

function caseOf(attributes: Attributes, suite: string): Draft {
  const seconds = Number((attributes.get("time") ?? "0").replaceAll(",", ""));
  const file = attributes.get("file");
  return {
    suite: cut(attributes.get("classname") ?? suite, nameMax) || suite,
    name: cut(attributes.get("name") ?? "", nameMax),
    outcome: "passed",
    ms: Number.isFinite(seconds) && seconds > 0 ? Math.round(Math.min(seconds, 1e7) * 1_000) : 0,
    ...(file !== undefined && { file: cut(file, nameMax) }),
  };
}

/** What an element within a test case says about it. */
function tell(draft: Draft, name: string, attributes: Attributes): void {
  if (name === "failure" || name === "error") {
    draft.outcome = "failed";
    const message = attributes.get("message") ?? attributes.get("type");
    if (message !== undefined && draft.message === undefined) draft.message = cut(message, messageMax);
  } else if (name === "skipped" && draft.outcome === "passed") draft.outcome = "skipped";
  else if (name === "flakyFailure" || name === "flakyError") draft.isFlaky = true;
}

const cut = (text: string, max: number): string =>
  (text.length > max ? text.slice(0, max) : text).replaceAll(/\p{Cc}/gu, " ").trim();

type Tag = {
  readonly kind: "open" | "close" | "empty";
  readonly name: string;
  readonly attributes: Attributes;
  readonly at: number;
};

const nameAt = /[A-Za-z_][A-Za-z0-9_.:-]*/y;
const attributeAt = /\s+([A-Za-z_][A-Za-z0-9_.:-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const endAt = /\s*(\/?)>/y;

/** The tags in order; text between them says nothing that is kept. */
function* tagsIn(text: string): Generator<Tag> {
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", at)) {
    if (text.startsWith("<!--", at)) at = after(text, "-->", at + 4);
    else if (text.startsWith("<![CDATA[", at)) at = after(text, "]]>", at + 9);
    else if (text.startsWith("<?", at)) at = after(text, "?>", at + 2);
    else if (text.startsWith("<!", at)) throw invalid("it declares a document type or entities, which is refused", at);
    else {
      const isClose = text[at + 1] === "/";
      const name = matchAt(nameAt, text, at + (isClose ? 2 : 1))?.[0];
      if (name === undefined || name.length > 100) throw invalid("this is no tag", at);
      let end = at + (isClose ? 2 : 1) + name.length;
      const attributes = new Map<string, string>();
      for (let found = matchAt(attributeAt, text, end); found; found = matchAt(attributeAt, text, end)) {
        if (attributes.size >= attributesMax) throw invalid(`<${name}> has too many attributes`, at);
        attributes.set(found[1] ?? "", plain(found[2] ?? found[3] ?? ""));
        end += found[0].length;
      }
      const closed = matchAt(endAt, text, end);
      if (!closed || (isClose && (closed[1] === "/" || attributes.size > 0)))
        throw invalid(`<${name} does not end`, at);
      yield { kind: isClose ? "close" : closed[1] === "/" ? "empty" : "open", name, attributes, at };
      at = end + closed[0].length;
    }
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function after(text: string, end: string, from: number): number {
  const at = text.indexOf(end, from);
  if (at === -1) throw invalid(`something does not end with ${end}`, from);
  return at + end.length;
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** Any other entity stays as it is written: nothing is ever expanded. */
const plain = (text: string): string =>
  text.length > 100_000
    ? plain(text.slice(0, 100_000))
    : text.replaceAll(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(lt|gt|amp|quot|apos));/g, (all, hex, decimal, named) => {
        if (named !== undefined) return entities[named as string] ?? "";
        const code = hex === undefined ? Number(decimal) : Number.parseInt(hex as string, 16);
        return code > 0x10_ffff || code === 0 ? all : String.fromCodePoint(code);
      });
