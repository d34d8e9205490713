/** YAML text to a tree of nodes, within limits: size, depth, and how far aliases may expand. */
import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Pair,
  type Scalar as YamlScalar,
} from "yaml";
import type { Limits } from "#doors/ci/workflow/limits.ts";
import type { Place, Problems } from "#doors/ci/workflow/problem.ts";
import { hostileBy } from "./hostile.ts";
import type { Entry, Node, ScalarNode } from "./node.ts";
import { collectionTags, plainScalar, taggedScalar } from "./scalar.ts";

/** Undefined when the text cannot be read; why is among the problems then. */
export function readYaml(text: string, problems: Problems, limits: Limits): Node | undefined {
  if (text.length > limits.fileLengthMax) {
    problems.add(undefined, `The maximum file size of ${limits.fileLengthMax} characters has been exceeded`);
    return undefined;
  }
  const hostile = hostileBy(text, limits);
  if (hostile !== undefined) {
    problems.add(undefined, hostile);
    return undefined;
  }
  try {
    return new Reader(text, problems, limits).read();
  } catch (error) {
    if (error instanceof Unreadable) problems.add(error.at, error.message);
    else if (error instanceof RangeError) problems.add(undefined, "Maximum object depth exceeded"); // the stack was
    else throw error;
    return undefined;
  }
}

class Unreadable extends Error {
  readonly at: Place | undefined;

  constructor(message: string, at?: Place) {
    super(message);
    this.at = at;
  }
}

/** Mistakes that the reference overlooks: a comment without a blank before it, and shallow lines inside quotes. */
const forgiven: ReadonlySet<string> = new Set(["MISSING_CHAR", "BAD_INDENT", "BAD_SCALAR_START"]);

class Reader {
  readonly #lines = new LineCounter();
  readonly #document: Document;
  readonly #text: string;
  readonly #problems: Problems;
  readonly #limits: Limits;
  readonly #open = new Set<unknown>();
  #nodes = 0;
  #depth = 0;

  constructor(text: string, problems: Problems, limits: Limits) {
    this.#text = text;
    this.#problems = problems;
    this.#limits = limits;
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      schema: "failsafe",
      uniqueKeys: false,
      logLevel: "silent",
      prettyErrors: false,
    });
  }

  read(): Node | undefined {
    const errors = this.#document.errors.filter(({ code, message }) => !forgivable(code, message));
    for (const error of errors) this.#problems.add(this.#place(error.pos[0]), error.message);
    if (errors.length > 0) return undefined;
    return this.#node(this.#document.contents);
  }

  #node(node: unknown): Node {
    this.#nodes += 1;
    if (this.#nodes > this.#limits.nodesMax) throw new Unreadable("Maximum YAML nodes exceeded");
    if (isAlias(node)) return this.#alias(node);
    if (isScalar(node)) return this.#scalar(node);
    if (isMap(node)) {
      this.#checkCollection(node);
      const at = this.#at(node);
      return this.#nested(node, () => ({ kind: "mapping", at, entries: node.items.map((pair) => this.#entry(pair)) }));
    }
    if (isSeq(node)) {
      this.#checkCollection(node);
      const at = this.#at(node);
      return this.#nested(node, () => ({ kind: "sequence", at, items: node.items.map((item) => this.#node(item)) }));
    }
    return { kind: "scalar", at: { line: 1, column: 1 }, value: null };
  }

  #nested(node: unknown, read: () => Node): Node {
    if (this.#open.has(node)) throw new Unreadable("An alias refers to a node that contains it");
    this.#open.add(node);
    this.#depth += 1;
    if (this.#depth > this.#limits.depthMax) throw new Unreadable("Maximum object depth exceeded");
    const result = read();
    this.#depth -= 1;
    this.#open.delete(node);
    return result;
  }

  #alias(alias: Alias): Node {
    const target = alias.resolve(this.#document);
    if (!target) throw new Unreadable(`Unknown anchor '${alias.source}'`, this.#at(alias));
    return this.#node(target);
  }

  #entry(pair: Pair): Entry {
    const key = isAlias(pair.key) ? pair.key.resolve(this.#document) : pair.key;
    const isMerge = isScalar(key) && key.value === "<<" && key.type === "PLAIN";
    if (isMerge) throw new Unreadable("The merge key '<<' is not supported", this.#at(key));
    if (key !== null && !isScalar(key)) throw new Unreadable("A mapping key must be a scalar", this.#at(pair.key));
    this.#nodes += 1;
    const read = key ? this.#scalar(key) : ({ kind: "scalar", at: { line: 1, column: 1 }, value: null } as const);
    const value =
      pair.value === null ? ({ kind: "scalar", at: read.at, value: null } as const) : this.#node(pair.value);
    return { key: read, value };
  }

  #scalar(node: YamlScalar): ScalarNode {
    const at = this.#at(node);
    this.#checkAnchor(node.anchor);
    const text = this.#withoutAddedNewline(node, typeof node.value === "string" ? node.value : (node.source ?? ""));
    const isPlain = node.type === "PLAIN" || node.type === undefined;
    if (node.tag === undefined || node.tag === "!") {
      return { kind: "scalar", at, value: isPlain && node.tag === undefined ? plainScalar(text) : text };
    }
    const tagged = taggedScalar(node.tag, text, isPlain);
    if ("value" in tagged) return { kind: "scalar", at, value: tagged.value };
    throw new Unreadable(this.#tagProblem(tagged.problem, node, this.#atTag(node)));
  }

  /** A block that ends with the file, without a line end, gets none; the parser adds one. */
  #withoutAddedNewline(node: YamlScalar, text: string): string {
    const isBlock = node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED";
    const reachesEnd = (node.range?.[1] ?? 0) >= this.#text.length && !this.#text.endsWith("\n");
    return isBlock && reachesEnd && text.endsWith("\n") ? text.slice(0, -1) : text;
  }

  #tagProblem(problem: "tag" | "value" | "style", node: YamlScalar, { line, column }: Place): string {
    if (problem === "tag") return `Unexpected tag '${node.tag}'`;
    if (problem === "value")
      return `The value '${String(node.value)}' on line ${line} and column ${column} is invalid for the type '${node.tag}'`;
    const style = styles[node.type ?? ""] ?? node.type;
    return `The scalar style '${style}' on line ${line} and column ${column} is not valid with the tag '${node.tag}'`;
  }

  #checkCollection(node: { readonly tag?: string; readonly anchor?: string }): void {
    this.#checkAnchor(node.anchor);
    if (node.tag !== undefined && !collectionTags.has(node.tag)) throw new Unreadable(`Unexpected tag '${node.tag}'`);
  }

  #checkAnchor(anchor: string | undefined): void {
    if (anchor !== undefined && !this.#limits.areAnchorsAllowed)
      throw new Unreadable(`Anchors are not currently supported. Remove the anchor '${anchor}'`);
  }

  #at(node: unknown): Place {
    const range = (node as { readonly range?: readonly number[] | null }).range;
    return this.#place(range?.[0] ?? 0);
  }

  /** Where the tag before a scalar starts. */
  #atTag(node: YamlScalar): Place {
    const before = this.#text.slice(0, node.range?.[0] ?? 0).trimEnd();
    return this.#place(before.search(/\S+$/));
  }

  #place(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }
}

const styles: Readonly<Record<string, string>> = {
  QUOTE_DOUBLE: "DoubleQuoted",
  QUOTE_SINGLE: "SingleQuoted",
  BLOCK_LITERAL: "Literal",
  BLOCK_FOLDED: "Folded",
};

function forgivable(code: string, message: string): boolean {
  if (!forgiven.has(code)) return false;
  return /comment|indent/i.test(message) && !/collection|sequence|mapping|map/i.test(message);
}
