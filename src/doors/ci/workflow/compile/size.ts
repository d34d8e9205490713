/** What a tree takes in memory, roughly: stops what expands to more than any workflow needs. */
import type { Node } from "#doors/ci/workflow/yaml/node.ts";

const nodeBytesMin = 24;
const stringBytesMin = 26;

export function nodeBytes(node: Node): number {
  switch (node.kind) {
    case "scalar":
      return nodeBytesMin + (typeof node.value === "string" ? textBytes(node.value) : 0);
    case "expression":
      return nodeBytesMin + textBytes(node.expression);
    case "sequence":
      return node.items.reduce((sum, item) => sum + nodeBytes(item), nodeBytesMin);
    case "mapping":
      return node.entries.reduce((sum, { key, value }) => sum + nodeBytes(key) + nodeBytes(value), nodeBytesMin);
    default:
      return nodeBytesMin;
  }
}

const textBytes = (text: string): number => stringBytesMin + text.length * 2;
