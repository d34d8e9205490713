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
    ...(section.oneOf ?? [section]).flatMap((variant) => [...variantTitle(variant), ...rows(variant)]),
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

const kindOf = (variant: JsonSchema): JsonSchema | undefined => variant.properties?.["kind"];

function variantTitle(variant: JsonSchema): readonly string[] {
  const kind = kindOf(variant);
  return kind ? [`### kind: ${String(kind.const)}`, "", kind.description ?? "", ""] : [];
}

function rows(variant: JsonSchema): readonly string[] {
  const settings = Object.entries(variant.properties ?? {}).filter(([, { const: fixed }]) => fixed === undefined);
  if (settings.length === 0) return [];
  return [
    "| Setting | Type | Default | Meaning |",
    "|---|---|---|---|",
    ...settings.map(
      ([name, setting]) =>
        `| \`${name}\` | ${typeOf(setting)} | ${defaultOf(name, setting)} | ${setting.description ?? ""} |`,
    ),
    "",
  ];
}

function typeOf({ type, items, minimum, maximum }: JsonSchema): string {
  if (type === "array") return `list of ${items?.type ?? "string"}`;
  return minimum !== undefined && maximum !== undefined ? `${type} ${minimum}-${maximum}` : (type ?? "string");
}

/** The same page on every machine: what depends on the machine is said in words. */
function defaultOf(name: string, { default: value }: JsonSchema): string {
  if (name === "slots" && value === Math.max(4, availableParallelism())) return "the number of processors, at least 4";
  if (name === "listen") return '`["unix"]`';
  return value === undefined ? "" : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}
