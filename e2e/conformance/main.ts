// `npm run conformance -- --target host:port`: the checklist against any server of remote caching.
//
//   --target HOST:PORT        the server, in clear
//   --instance NAME           where cases work; the empty name otherwise
//   --header NAME=VALUE       sent with every call; may be given several times
//   --reader-header N=V       of somebody who may read and may not write results
//   --http URL                Bazel's HTTP cache of the same server
//   --full HOST:PORT          a server of the same kind that has no room for a gigabyte
//   --files URL               a file server that the server may fetch from, with a file hello.txt
//   --only 1,2,33             these items only
//   --json FILE               the outcomes as JSON
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { openLab } from "./connect.ts";
import { reportLines } from "./report.ts";
import { allCases, runCase, type Outcome } from "./suite.ts";

const pairs = (given: readonly string[] | undefined) =>
  given?.map((text): [string, string] => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]);

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      target: { type: "string" },
      instance: { type: "string" },
      header: { type: "string", multiple: true },
      "reader-header": { type: "string", multiple: true },
      http: { type: "string" },
      full: { type: "string" },
      files: { type: "string" },
      only: { type: "string" },
      json: { type: "string" },
    },
  });
  if (values.target === undefined) {
    console.error("conformance: name the server, for example: npm run conformance -- --target 127.0.0.1:8980");
    return 2;
  }
  const only = new Set(values.only?.split(",").map(Number));
  await using lab = await openLab({
    target: values.target,
    ...(values.instance !== undefined && { instance: values.instance }),
    headers: pairs(values.header) ?? [],
    readerHeaders: pairs(values["reader-header"]),
    full: values.full,
    http: values.http,
    files: values.files,
  });
  const outcomes: Outcome[] = [];
  for (const one of allCases) if (only.size === 0 || only.has(one.item)) outcomes.push(await runCase(one, lab));
  for (const line of reportLines(outcomes)) console.log(line);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(outcomes, undefined, 1)}\n`);
  return outcomes.some(({ outcome }) => outcome === "failed") ? 1 : 0;
}

process.exitCode = await main();
