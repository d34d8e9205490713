/** A workflow file as a tree in which every node knows its line and column. All of it is plain data. */
import type { Place } from "#doors/ci/workflow/problem.ts";

export type Scalar = null | boolean | number | string;

export type ScalarNode = { readonly kind: "scalar"; readonly at: Place; readonly value: Scalar };

/** `${{ ... }}`, alone or inside text; in the second case the expression is a call of format. */
export type ExpressionNode = {
  readonly kind: "expression";
  readonly at: Place;
  readonly expression: string;
  /** As it was written, for messages. */
  readonly source: string;
  /** The contexts and functions that its key may use, by the name of the availability. */
  readonly available: string;
};

/** `${{ insert }}` as a key: the entries of the value take its place. */
export type InsertNode = { readonly kind: "insert"; readonly at: Place };

export type SequenceNode = { readonly kind: "sequence"; readonly at: Place; readonly items: readonly Node[] };

export type Entry = { readonly key: ScalarNode | ExpressionNode | InsertNode; readonly value: Node };

export type MappingNode = { readonly kind: "mapping"; readonly at: Place; readonly entries: readonly Entry[] };

export type Node = ScalarNode | ExpressionNode | SequenceNode | MappingNode | InsertNode;

export function entryOf(node: Node | undefined, name: string): Node | undefined {
  if (node?.kind !== "mapping") return undefined;
  return node.entries.find(({ key }) => key.kind === "scalar" && key.value === name)?.value;
}

/** The text of a plain string; undefined for anything else. */
export function stringOf(node: Node | undefined): string | undefined {
  return node?.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
}
