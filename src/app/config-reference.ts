/** docs/reference/config.md, from the schema itself. */
import { availableParallelism } from "node:os";
import { z } from "zod";
import { Config } from "./config.ts";

type JsonSchema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly oneOf?: readonly JsonSchema[];
};

export function configReference(): string {
  const schema = z.toJSONSchema(Config, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const sections = Object.entries(schema.properties ?? {}).flatMap(([name, section]) => [
    `## ${name}`,
    "",
    section.description ?? "",
    "",
    ...described(name, section),
  ]);
  return [
    "# Configuration",
    "",
    "<!-- Written by src/cli/reference.ts from the schema in src/app/config.ts; change that, not this page. -->",
    "",
    "YAML or JSON, named with `millrace up --config FILE`, or `config.yaml` in the data folder. None is needed.",
    "A setting that is not listed here is refused, with its line.",
    "",
    'Durations are written "250ms", "30s", "5m", "2h", "7d"; sizes "64KiB", "100MiB", "2GiB".',
    "",
    "`cluster` must be the same on all nodes; the rest may differ from node to node.",
    "",
    ...sections,
  ]
    .join("\n")
    .replace(/\n+$/, "\n");
}

/** The settings of one part, and then those of its parts. */
function described(path: string, part: JsonSchema): readonly string[] {
  const variants = part.oneOf ?? [part];
  return variants.flatMap((variant) => [
    ...variantTitle(variant),
    ...rows(path, variant),
    ...Object.entries(variant.properties ?? {}).flatMap(([name, setting]) => {
      const inner = setting.type === "array" ? setting.items : setting;
      if (!inner?.properties && !inner?.oneOf) return [];
      const below = `${path}.${name}${setting.type === "array" ? "[]" : ""}`;
      return [`### ${below}`, "", setting.description ?? "", "", ...described(below, inner)];
    }),
  ]);
}

const kindOf = (variant: JsonSchema): JsonSchema | undefined => variant.properties?.["kind"];

function variantTitle(variant: JsonSchema): readonly string[] {
  const kind = kindOf(variant);
  return kind ? [`### kind: ${String(kind.const)}`, "", kind.description ?? "", ""] : [];
}

function rows(path: string, variant: JsonSchema): readonly string[] {
  const settings = Object.entries(variant.properties ?? {}).filter(([, { const: fixed }]) => fixed === undefined);
  if (settings.length === 0) return [];
  return [
    "| Setting | Type | Default | Meaning |",
    "|---|---|---|---|",
    ...settings.map(
      ([name, setting]) =>
        `| \`${name}\` | ${typeOf(setting)} | ${defaultOf(`${path}.${name}`, setting)} | ${setting.description ?? ""} |`,
    ),
    "",
  ];
}

function typeOf({ type, items, minimum, maximum }: JsonSchema): string {
  if (type === "array") return `list of ${items?.type ?? "string"}`;
  return minimum !== undefined && maximum !== undefined ? `${type} ${minimum}-${maximum}` : (type ?? "string");
}

/** The same page on every machine: what depends on the machine is said in words. */
function defaultOf(path: string, { default: value }: JsonSchema): string {
  if (path === "worker.slots" && value === Math.max(4, availableParallelism()))
    return "the number of processors, at least 4";
  if (path === "node.listen") return '`["unix"]`';
  return value === undefined ? "" : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}
