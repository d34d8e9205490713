/** docs/reference/events.md, from the schema of the event feed's items. */
import { z } from "zod";
import { changes, EventItem } from "#api/events.ts";

type JsonSchema = {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
};

export function eventLines(): readonly string[] {
  const schema = z.toJSONSchema(EventItem) as JsonSchema;
  return [
    "Every transition of jobs, stages, tasks and steps is an item of the event feed: `GET /v1/events`,",
    "`millrace events`, `Events.Read` of the work protocol, and what webhooks deliver. How to read it:",
    "[how-to/events.md](../how-to/events.md).",
    "",
    "What readers may rely on:",
    "",
    "- **At least once.** A reader that goes on at its last cursor misses nothing; it may get items again that it got",
    "  after that cursor. The same transition always has the same `id`.",
    "- **In order.** The items of a job are in the order in which they happened, and so are all items of one shard",
    "  (the part of the id before the first `-`). Items of different shards have no order.",
    "- **For as long as the log is archived**, which is for ever unless an operator deletes its segments.",
    "- **Fields are added, never changed.** Readers skip fields, and values of `change`, that they do not know.",
    "",
    "## Fields",
    "",
    "| Field | Type | Meaning |",
    "|---|---|---|",
    ...rows(schema, ""),
    "",
    "## Changes",
    "",
    "| Kind | Change | Meaning |",
    "|---|---|---|",
    ...changes.map(([kind, change, about]) => `| ${kind} | \`${change.split(", ").join("`, `")}\` | ${about} |`),
    "",
  ];
}

function rows({ properties = {}, required = [] }: JsonSchema, prefix: string): readonly string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const type = field.enum ? field.enum.map((one) => `\`${one}\``).join(", ") : (field.type ?? "true");
    const optional = required.includes(name) ? "" : ", optional";
    return [
      `| \`${prefix}${name}\` | ${type}${optional} | ${field.description ?? ""} |`,
      ...rows(name === "tags" ? {} : field, `${prefix}${name}.`),
    ];
  });
}
