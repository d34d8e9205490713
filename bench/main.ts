/**
 * `npm run bench [NAME] -- [--check] [--json FILE] [--only PART] [--peers] [--remote] [--smoke]`: without a name the
 * canonical workload and its two numbers. Exit code: 0 done, 1 a target was missed (with --check), 2 wrong command
 * line, 3 a target could not be shown (with --check), as when a peer is not installed.
 */
import { parseArgs } from "node:util";
import { array } from "#bench/array/array.ts";
import { attacks } from "#bench/edge/attacks.ts";
import { batch } from "#bench/batch/batch.ts";
import { cache } from "#bench/cache/cache.ts";
import { canonical } from "#bench/kernel/canonical.ts";
import { ci } from "#bench/ci/ci.ts";
import { deploy } from "#bench/deploy/deploy.ts";
import { edge } from "#bench/edge/edge.ts";
import { streams } from "#bench/edge/streams.ts";
import { feed } from "#bench/feed/feed.ts";
import { growth } from "#bench/kernel/growth.ts";
import { kernel } from "#bench/kernel/kernel.ts";
import { logs } from "#bench/logs/logs.ts";
import { protobuf } from "./protobuf.ts";
import { exec } from "#bench/exec/exec.ts";
import { exitCodes, Report } from "./report.ts";
import { store } from "#bench/store/store.ts";
import { spawn } from "#bench/exec/spawn.ts";
import { tasks } from "#bench/tasks/tasks.ts";
import type { Suite } from "./suite.ts";

const suites: readonly Suite[] = [
  canonical,
  kernel,
  edge,
  streams,
  attacks,
  cache,
  store,
  logs,
  feed,
  growth,
  protobuf,
  spawn,
  exec,
  tasks,
  array,
  ci,
  batch,
  deploy,
];

async function main(args: readonly string[]): Promise<number> {
  let given;
  try {
    given = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        check: { type: "boolean", default: false },
        json: { type: "string" },
        peers: { type: "boolean", default: false },
        remote: { type: "boolean", default: false },
        resume: { type: "boolean", default: false },
        smoke: { type: "boolean", default: false },
        only: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage()}`);
    return exitCodes.wrongUse;
  }
  const { values, positionals } = given;
  const [name = canonical.name, ...rest] = positionals;
  const suite = suites.find((one) => one.name === name);
  if (values.help || !suite || rest.length > 0) {
    console.error(usage());
    return values.help ? exitCodes.done : exitCodes.wrongUse;
  }
  // `npm run bench kernel --remote`, without the dashes in between, is an option of npm, which passes it on like this.
  const remote = values.remote || process.env["npm_config_remote"] === "true";
  const isResume = values.resume || process.env["npm_config_resume"] === "true";
  const only = values.only ?? (isResume ? "resume" : undefined);
  const report = new Report(suite.name);
  report.say(`bench ${suite.name}: ${suite.about}`);
  if (values.smoke) report.say("Smoke run: shows that it works; the figures mean nothing.");
  await suite.run(report, { smoke: values.smoke, peers: values.peers, remote, only });
  return report.end({ check: values.check, json: values.json, notMeasured: suite.notMeasured });
}

const usage = (): string =>
  [
    "npm run bench [NAME] -- [--check] [--json FILE] [--only PART] [--peers] [--remote] [--smoke]",
    ...suites.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`),
  ].join("\n");

process.exitCode = await main(process.argv.slice(2));
