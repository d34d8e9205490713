// `npm run conformance -- --target host:port`: the checklist against any server of remote caching and execution.
//
//   --target HOST:PORT        the server, in clear
//   --instance NAME           where cases work; the empty name otherwise
//   --header NAME=VALUE       sent with every call; may be given several times
//   --reader-header N=V       of a caller that may read, but not write results
//   --http URL                Bazel's HTTP cache of the same server
//   --full HOST:PORT          a server of the same kind that has no room for a gigabyte
//   --files URL               a file server that the server may fetch from, with a file hello.txt
//   --property NAME=VALUE     sent with every action, such as the pool that is to run it; may be given several times
//   --memory-property N=V     gives an action no more than 64 MiB of memory
//   --narrow-header N=V       of a caller with one running and three waiting actions
//   --executor-header N=V     of a caller that may run tasks by Millrace's own work protocol
//   --leave-grace SECONDS     how long an action goes on without a waiting client
//   --crash COMMAND           a line for the shell: kills the server and starts it again
//   --forget COMMAND          a line for the shell: has the server let go of every blob that it may
//   --only 1,2,33             these items only
//   --json FILE               the outcomes as JSON
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { parseArgs, promisify } from "node:util";
import { openLab } from "./connect.ts";
import { reportLines } from "./report.ts";
import { allCases, runCase, type Outcome } from "./suite.ts";

const pairs = (given: readonly string[] | undefined) =>
  given?.map((text): [string, string] => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]);

const properties = (given: readonly string[] | undefined) => pairs(given)?.map(([name, value]) => ({ name, value }));

const line = (given: string | undefined) =>
  given === undefined ? undefined : async () => void (await promisify(execFile)("/bin/sh", ["-c", given]));

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
      property: { type: "string", multiple: true },
      "memory-property": { type: "string" },
      "narrow-header": { type: "string", multiple: true },
      "executor-header": { type: "string", multiple: true },
      "leave-grace": { type: "string" },
      crash: { type: "string" },
      forget: { type: "string" },
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
    narrowHeaders: pairs(values["narrow-header"]),
    executorHeaders: pairs(values["executor-header"]),
    platform: properties(values.property) ?? [],
    littleMemory: properties(values["memory-property"] === undefined ? [] : [values["memory-property"]])?.[0],
    leaveGraceMs: values["leave-grace"] === undefined ? undefined : Number(values["leave-grace"]) * 1_000,
    crash: line(values.crash),
    forget: line(values.forget),
  });
  const outcomes: Outcome[] = [];
  for (const one of allCases) if (only.size === 0 || only.has(one.item)) outcomes.push(await runCase(one, lab));
  for (const line of reportLines(outcomes)) console.log(line);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(outcomes, undefined, 1)}\n`);
  return outcomes.some(({ outcome }) => outcome === "failed") ? 1 : 0;
}

process.exitCode = await main();
