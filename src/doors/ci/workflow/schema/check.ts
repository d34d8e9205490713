/** Holds a tree against the schema: the result has expressions in their place and scalars of the right kind. */
import { availability, type Availability } from "#doors/ci/workflow/expression/availability.ts";
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import type {
  Entry,
  ExpressionNode,
  InsertNode,
  MappingNode,
  Node,
  ScalarNode,
  SequenceNode,
} from "#doors/ci/workflow/yaml/node.ts";
import { any, type Definition, type MappingDefinition } from "./definition.ts";
import { split } from "./split.ts";

const none = availability([]);
const notAllowed = "A template expression is not allowed in this context";

export function check(node: Node, definition: Definition, problems: Problems): Node {
  return new Checker(problems).node(node, definition, none);
}

class Checker {
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  node(node: Node, definition: Definition, above: Availability): Node {
    const available = definition.available ?? above;
    switch (node.kind) {
      case "scalar":
        return this.#scalar(node, definition, available);
      case "sequence":
        return this.#sequence(node, definition, available);
      case "mapping":
        return this.#mapping(node, definition, available);
      default:
        return node; // checked before: an expression stays one
    }
  }

  #sequence(node: SequenceNode, definition: Definition, available: Availability): Node {
    const found = alternatives(definition, available).find(
      ({ definition: { kind } }) => kind === "sequence" || kind === "any",
    );
    if (!found) {
      this.#problems.add(node.at, "A sequence was not expected");
      return node;
    }
    const item = found.definition.kind === "sequence" ? found.definition.item : any;
    return { ...node, items: node.items.map((child) => this.node(child, item, found.available)) };
  }

  #mapping(node: MappingNode, definition: Definition, available: Availability): Node {
    const options = alternatives(definition, available);
    const found = options.flatMap((option) =>
      option.definition.kind === "mapping" ? [{ ...option, definition: option.definition }] : [],
    );
    const [first] = found;
    if (first)
      return this.#entries(
        node,
        found.map((option) => option.definition),
        first.available,
      );
    const loose = options.find((option) => option.definition.kind === "any");
    if (loose)
      return this.#entries(
        node,
        [{ kind: "mapping", properties: {}, rest: { key: { kind: "string" }, value: any } }],
        loose.available,
      );
    this.#problems.add(node.at, "A mapping was not expected");
    return node;
  }

  #entries(node: MappingNode, definitions: readonly MappingDefinition[], available: Availability): MappingNode {
    let candidates = definitions;
    const seen = new Set<string>();
    const entries: Entry[] = [];
    let hasExpressionKey = false;
    for (const { key: rawKey, value } of node.entries) {
      const key = rawKey.kind === "scalar" ? this.#key(rawKey, available) : rawKey;
      if (key === undefined) continue;
      if (key.kind !== "scalar") {
        hasExpressionKey = true;
        if (available.contexts.length === 0) this.#problems.add(key.at, notAllowed);
        else entries.push({ key, value: this.node(value, candidates[0]?.rest?.value ?? any, available) });
        continue;
      }
      const name = textOf(key.value);
      if (name !== "" && seen.has(name.toUpperCase())) {
        this.#problems.add(key.at, `'${name}' is already defined`);
        continue;
      }
      seen.add(name.toUpperCase());
      const next = this.#candidatesFor(candidates, name, value);
      if (next.length > 0) candidates = next;
      const property = next[0]?.properties[name]?.value ?? this.#rest(key, name, candidates);
      if (property) entries.push({ key: { ...key, value: name }, value: this.node(value, property, available) });
      else this.#problems.add(key.at, `Unexpected value '${name}'`);
    }
    this.#missing(node, candidates, { seen, hasExpressionKey });
    return { ...node, entries };
  }

  /** The mappings that know this key, and of them those that know this word as its value. */
  #candidatesFor(candidates: readonly MappingDefinition[], name: string, value: Node): readonly MappingDefinition[] {
    const knowing = candidates.filter((candidate) => Object.hasOwn(candidate.properties, name));
    if (knowing.length < 2 || value.kind !== "scalar") return knowing;
    const word = value.value;
    const fitting = knowing.filter((candidate) => {
      const definition = candidate.properties[name]?.value;
      return definition?.kind !== "string" || definition.among === undefined || matches(word, definition);
    });
    return fitting.length > 0 ? fitting : knowing;
  }

  #rest(key: ScalarNode, name: string, candidates: readonly MappingDefinition[]): Definition | undefined {
    const rest = candidates[0]?.rest;
    if (rest && name === "" && rest.key.kind === "string" && rest.key.isNonEmpty) return undefined;
    return rest?.value;
  }

  #missing(
    node: MappingNode,
    candidates: readonly MappingDefinition[],
    { seen, hasExpressionKey }: { readonly seen: ReadonlySet<string>; readonly hasExpressionKey: boolean },
  ): void {
    const [only, ...others] = candidates;
    if (others.length > 0) {
      const names = candidates.flatMap(({ properties }) => Object.keys(properties));
      const telling = names.filter((name) => names.filter((other) => other === name).length === 1);
      const list = telling.toSorted().join(", ");
      this.#problems.add(
        node.at,
        `There's not enough info to determine what you meant. Add one of these properties: ${list}`,
      );
    } else if (only && !hasExpressionKey)
      for (const [name, { isRequired }] of Object.entries(only.properties))
        if (isRequired && !seen.has(name.toUpperCase()))
          this.#problems.add(node.at, `Required property is missing: ${name}`);
  }

  #key(key: ScalarNode, available: Availability): ScalarNode | ExpressionNode | InsertNode | undefined {
    const read = this.#expression(key, available);
    if (read === "problem") return available.contexts.length === 0 ? key : undefined;
    return read;
  }

  #scalar(node: ScalarNode, definition: Definition, available: Availability): Node {
    const options = alternatives(definition, available);
    const inner = options.find((option) => option.available.contexts.length > 0)?.available ?? available;
    const read = this.#expression(node, inner);
    if (read === "problem") return this.#literal(node, options);
    if (read.kind === "scalar") return this.#literal(read, options);
    if (inner.contexts.length === 0) this.#problems.add(node.at, notAllowed);
    return read;
  }

  #expression(node: ScalarNode, available: Availability): ScalarNode | ExpressionNode | InsertNode | "problem" {
    if (typeof node.value !== "string") return node;
    const result = split(node.value, available.contexts.length === 0 ? anything : available);
    switch (result.kind) {
      case "text":
        return node;
      case "literal":
        return { ...node, value: result.text };
      case "insert":
        return { kind: "insert", at: node.at };
      case "expression":
        return {
          kind: "expression",
          at: node.at,
          expression: result.expression,
          source: node.value,
          available: available.name,
        };
      default:
        for (const message of result.messages) this.#problems.add(node.at, message);
        return "problem";
    }
  }

  #literal(node: ScalarNode, options: readonly Option[]): Node {
    if (options.some(({ definition }) => matches(node.value, definition))) return node;
    const text = textOf(node.value);
    if (typeof node.value !== "string" && options.some(({ definition }) => matches(text, definition)))
      return { ...node, value: text };
    this.#problems.add(node.at, `Unexpected value '${text}'`);
    return node;
  }
}

/** For places without expressions: what is inside does not matter, that it is there does. */
const anything = availability([
  "github",
  "inputs",
  "vars",
  "needs",
  "strategy",
  "matrix",
  "secrets",
  "steps",
  "job",
  "jobs",
  "runner",
  "env",
]);

type Option = { readonly definition: Definition; readonly available: Availability };

function alternatives(definition: Definition, above: Availability): readonly Option[] {
  const available = definition.available ?? above;
  if (definition.kind !== "one-of") return [{ definition, available }];
  return definition.of.flatMap((option) => alternatives(option, available));
}

function matches(value: ScalarNode["value"], definition: Definition): boolean {
  switch (definition.kind) {
    case "any":
      return true;
    case "null":
      return value === null;
    case "boolean":
      return typeof value === "boolean";
    case "number":
      return typeof value === "number";
    case "string":
      if (typeof value !== "string") return false;
      if (definition.isNonEmpty && value === "") return false;
      return definition.among === undefined || definition.among.includes(value);
    default:
      return false;
  }
}
