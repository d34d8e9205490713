/** The reference of a list of endpoints as Markdown: docs/reference/http.md. Pure. */
import { z } from "zod";
import { policy } from "#access/policy.ts";
import type { Answer, Endpoint, Fields } from "./endpoint.ts";

export function httpReference(endpoints: readonly Endpoint[]): string {
  const groups = Map.groupBy(endpoints, groupOf);
  return [...head, ...[...groups].flatMap(([group, all]) => section(group, all)), ""].join("\n").replace(/\n+$/, "\n");
}

const head = [
  "# The HTTP API",
  "",
  "Made from the table of routes by `npm run generate`. A running node describes itself at `/v1/openapi.json`",
  "(OpenAPI 3.1), from the same table.",
  "",
  "- Callers show who they are with `authorization: Bearer TOKEN`; browsers with the cookie of a session.",
  "- Every failure is `application/problem+json` with `status` and `title`.",
  "- `?tenant=` says whose things are meant, where it is not the caller's own tenant; only operators may name another.",
  "- `Idempotency-Key` on a call that changes something: sent again with the same key and body, it gets its first",
  "  answer (`idempotency-replayed: true`) from any node of the cluster, for 24 hours and the last 10,000 keys of a",
  "  tenant.",
  "  Another body under the same key is refused with 422, one that is still being handled with 409.",
  "- JSON that is read has an `etag`; `if-none-match` gives 304.",
  "- Server-sent events have a heartbeat every 15 seconds; those with an `id` resume after `Last-Event-ID`.",
  "- A page of another site can neither call nor read any of this: `Host`, `Origin` and `Sec-Fetch-Site` are checked,",
  "  and there is no CORS.",
  "",
];

/** "/v1/jobs/{job}/watch" -> "jobs". */
const groupOf = ({ path }: Endpoint): string => path.split("/")[2]?.replace(/\..*$/, "") ?? "";

const section = (group: string, endpoints: readonly Endpoint[]): readonly string[] => [
  `## ${group}`,
  "",
  ...endpoints.flatMap((endpoint) => [
    `### \`${endpoint.name}\``,
    "",
    endpoint.about,
    "",
    `For ${whoMay(endpoint)} (\`${endpoint.action}\`). ${answerText(endpoint.answer)}`,
    "",
    ...fieldTable(endpoint),
  ]),
];

function whoMay({ action }: Endpoint): string {
  const { for: who, of } = policy[action];
  if (who === "everyone") return "everyone";
  if (who === "known") return "callers with credentials of any kind";
  const roles = who.join(", ");
  return of === "tenant" ? `${roles} of the tenant` : roles;
}

function answerText(answer: Answer): string {
  switch (answer.kind) {
    case "json":
      return `Answers ${answer.statuses.join(" or ")} with JSON: ${shapeOf(answer.schema)}.`;
    case "none":
      return "Answers 204.";
    case "events":
      return `Sends server-sent events; each has ${shapeOf(answer.schema)}.`;
    case "lines":
      return `Sends one JSON object a line: ${shapeOf(answer.schema)}.`;
    case "bytes":
      return `Answers with bytes (\`${answer.contentType}\`).`;
    case "socket":
      return `Becomes a WebSocket. It sends ${shapeOf(answer.sends)}; it takes ${shapeOf(answer.receives)}.`;
    default:
      return answer satisfies never;
  }
}

type Shape = {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, { readonly const?: unknown }>>;
  readonly required?: readonly string[];
  readonly oneOf?: readonly Shape[];
  readonly anyOf?: readonly Shape[];
};

/** The names of its members; those in brackets may be left out. */
function shapeOf(schema: z.ZodType): string {
  return describe(z.toJSONSchema(schema, { unrepresentable: "any" }) as Shape);
}

function describe({ properties = {}, required = [], oneOf, anyOf }: Shape): string {
  const variants = oneOf ?? anyOf;
  if (variants) return variants.map(describe).join(", or ");
  const names = Object.entries(properties).map(([name, { const: fixed }]) => {
    const text = fixed === undefined ? name : `${name}: ${JSON.stringify(fixed)}`;
    return required.includes(name) ? `\`${text}\`` : `[\`${text}\`]`;
  });
  return names.length === 0 ? "an object" : names.join(", ");
}

function fieldTable({ params, query, body }: Endpoint): readonly string[] {
  const rows = [...fieldRows(params, "path"), ...fieldRows(query, "query")];
  if (body?.kind === "json") {
    const { properties = {}, required = [] } = z.toJSONSchema(body.schema, { io: "input", unrepresentable: "any" });
    for (const [name, about] of Object.entries(properties))
      rows.push(row(name, `body${required.includes(name) ? "" : ", optional"}`, about));
  }
  if (body?.kind === "bytes") rows.push("| | body | the bytes |");
  return rows.length === 0 ? [] : ["| Field | In | Meaning |", "|---|---|---|", ...rows, ""];
}

const fieldRows = (fields: Fields | undefined, place: string): string[] =>
  Object.entries(fields?.shape ?? {}).map(([name, schema]) => {
    const isOptional = (schema as z.ZodType).safeParse(undefined).success && place === "query";
    const about = z.toJSONSchema(schema as z.ZodType, { io: "input", unrepresentable: "any" });
    return row(name, `${place}${isOptional ? ", optional" : ""}`, about);
  });

type About = {
  readonly description?: string;
  readonly type?: unknown;
  readonly default?: unknown;
  readonly enum?: unknown[];
};

function row(name: string, place: string, given: unknown): string {
  const { description = "", type, default: otherwise, enum: words } = given as About;
  const kind = words ? words.map(String).join(", ") : typeof type === "string" ? type : "";
  const preset = otherwise === undefined || otherwise === "" ? "" : ` (${JSON.stringify(otherwise)} if left out)`;
  const text = [kind, description].filter((part) => part !== "").join("; ");
  return `| \`${name}\` | ${place} | ${`${text}${preset}`.replaceAll("|", "\\|")} |`;
}
