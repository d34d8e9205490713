/** Pages of docs/reference that `npm run generate` makes from the program's own tables. */
import { doors } from "#app/doors.ts";
import { faultCodes } from "#app/record/fault-codes.ts";
import { configReference } from "#app/config/config-reference.ts";
import { limitsReference } from "#app/config/limits-reference.ts";
import { apiEndpoints } from "#app/compose/api.ts";
import { httpReference } from "#http/reference.ts";
import { rejections } from "#shard/work/rejected.ts";
import { flagText, helpAll } from "./help.ts";
import { eventLines } from "#cli/events/reference-events.ts";
import { tableOf } from "./table.ts";

export type Page = { readonly path: string; readonly content: string };

export const referencePages = (): readonly Page[] => [
  { path: "docs/reference/cli.md", content: cliPage() },
  { path: "docs/reference/config.md", content: configReference() },
  { path: "docs/reference/errors.md", content: errorsPage() },
  { path: "docs/reference/events.md", content: page("Events", eventLines()) },
  { path: "docs/reference/http.md", content: httpReference(apiEndpoints) },
  { path: "docs/reference/limits.md", content: limitsReference() },
];

export function cliPage(of = doors): string {
  const table = tableOf(of);
  const commands = table.flatMap(({ name, about, words, flags, examples }) => [
    `## millrace ${name}`,
    "",
    about,
    "",
    "```",
    `millrace ${name}${words === "" ? "" : ` ${words}`}`,
    "```",
    "",
    ...(Object.keys(flags).length === 0
      ? []
      : [
          "| Flag | Meaning |",
          "|---|---|",
          ...Object.entries(flags).map(([flag, value]) => `| \`${flagText(flag, value)}\` | ${value.about} |`),
          "",
        ]),
    "```sh",
    ...examples,
    "```",
    "",
  ]);
  return page("The command line", [
    "Exit codes: 0 done, 1 refused or failed, 2 wrong command line.",
    "With `--json` every line of output is one JSON object;",
    "notes and errors go to the error stream, an error as one JSON object too.",
    "",
    "```",
    ...helpAll(table),
    "```",
    "",
    ...commands,
  ]);
}

function errorsPage(): string {
  return page("Errors", [
    "Printed as `<doing>: <code> (<facts>)`, with the next command to type where there is one.",
    "",
    "## When the world fails",
    "",
    "| Code | Meaning | What to do |",
    "|---|---|---|",
    ...Object.entries(faultCodes).map(([code, { about, remedy }]) => `| \`${code}\` | ${about} | ${remedy} |`),
    "",
    "## When a request is refused",
    "",
    "A refused request changed nothing.",
    "",
    "| Kind | Meaning | What to do |",
    "|---|---|---|",
    ...Object.entries(rejections).map(([kind, { about, remedy }]) => `| \`${kind}\` | ${about} | ${remedy} |`),
    "",
  ]);
}

const page = (title: string, lines: readonly string[]): string =>
  [
    `# ${title}`,
    "",
    "<!-- Written by `npm run generate` from the tables of the program; change those, not this page. -->",
    "",
    ...lines,
  ]
    .join("\n")
    .replace(/\n+$/, "\n");
