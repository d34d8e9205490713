/** docs/reference/config.md, from the schema itself. */
import { availableParallelism } from "node:os";
import { Config } from "./config.ts";
import { schemaOf, type JsonSchema } from "#door/json-schema.ts";
import { variableOf } from "./config-settings.ts";

export function configReference(of = Config): string {
  const schema = schemaOf(of);
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
    "<!-- Written by src/cli/reference.ts from the schema in src/app/config/config.ts; change that, not this page. -->",
    "",
    "None is needed. A setting has one path, such as `worker.slots`, and can be given in three ways; the first takes",
    "precedence over the second, and that over the third:",
    "",
    "1. on the command line: `millrace up --set worker.slots=8`, as often as you like;",
    "2. in the environment: `MILLRACE_WORKER_SLOTS=8`, by the name in the tables below;",
    "3. in a file of YAML or JSON: `worker: { slots: 8 }`. It is named with `--config FILE` or `$MILLRACE_CONFIG`;",
    "   without either, `config.yaml` in the data folder is read if it exists.",
    "",
    "On the command line and in the environment, a list of texts may be written with commas (`a,b`); other lists",
    "and sections are written as in the file, on one line: `--set 'mesh={join: [10.0.0.5:7946]}'`. A setting that",
    "is not listed here is refused: with its line in a file, or by the name of the flag or variable.",
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

/** The settings of one section, then those of its subsections. */
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
    `| ${path}. | Variable | Type | Default | Meaning |`,
    "|---|---|---|---|---|",
    ...settings.map(([name, setting]) => row(`${path}.${name}`, name, setting)),
    "",
  ];
}

/** A setting inside a list has no variable. */
function row(path: string, name: string, setting: JsonSchema): string {
  const variable = path.includes("[]") ? "" : `\`${variableOf(path)}\``;
  const cells = [`\`${name}\``, variable, typeOf(setting), defaultOf(path, setting), setting.description ?? ""];
  return `| ${cells.join(" | ")} |`;
}

function typeOf({ type, items, minimum, maximum }: JsonSchema): string {
  if (type === "array") return `list of ${items?.type ?? "string"}`;
  return minimum !== undefined && maximum !== undefined ? `${type} ${minimum}-${maximum}` : (type ?? "string");
}

/** The same page on every machine: defaults that depend on the machine are described in text. */
function defaultOf(path: string, { default: value }: JsonSchema): string {
  if (path === "worker.slots" && value === Math.max(4, availableParallelism()))
    return "the number of processors, at least 4";
  if (path === "node.listen") return '`["unix"]`';
  return value === undefined ? "" : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}
