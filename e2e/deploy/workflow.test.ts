/** A release whose build is a run of CI: its artifact, uploaded by the official client, becomes the release. */
import { equal, match } from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { buildSync } from "esbuild";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const service = `
service: web
build: { workflow: build.yml, repository: mill/web, artifact: web }
run:
  exec: [${JSON.stringify(process.execPath)}, server.mjs]
  probe: { exec: "grep -q three server.mjs", within: 60s, every: 50ms }
targets: { labels: [role=web], regions: [eu] }
`;
const workflow = `
on: workflow_dispatch
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: mkdir out && sed s/two/three/ server.mjs > out/server.mjs && test ! -e broken
      - uses: ./.github/actions/upload
`;
const upload = `
import { DefaultArtifactClient } from "@actions/artifact";
await new DefaultArtifactClient().uploadArtifact("web", [process.cwd() + "/out/server.mjs"], process.cwd() + "/out");
`;
const limits = { limitMs: 120_000, everyMs: 200 };

describe("a release that CI builds", { skip, timeout: 180_000 }, () => {
  let fleet: DeployFleet;
  before(async () => {
    fleet = await DeployFleet.open(["m1"]);
    const action = join(fleet.repository, ".github/actions/upload");
    mkdirSync(action, { recursive: true });
    mkdirSync(join(fleet.repository, ".github/workflows"));
    writeFileSync(join(fleet.repository, ".github/workflows/build.yml"), workflow);
    writeFileSync(join(action, "action.yml"), "name: upload\nruns: { using: node20, main: index.mjs }\n");
    const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
    buildSync({
      stdin: { contents: upload, resolveDir: import.meta.dirname },
      bundle: true,
      platform: "node",
      format: "esm",
      banner: { js: banner },
      outfile: join(action, "index.mjs"),
      logLevel: "error",
    });
    fleet.commit(service, "setInterval(() => {}, 1000); // two\n");
    const token = new Headers(fleet.node.headers).get("authorization")?.replace(/^Bearer /, "") ?? "";
    await new CiNode(`http://${fleet.node.address}`, () => token).register("mill/web", fleet.repository);
    await until("the machine is attached", () => fleet.machines().length === 1, limits);
  });
  after(async () => await fleet[Symbol.asyncDispose]());

  const ended = async (): Promise<readonly [string, string]> => {
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    await until(`${job} has ended`, async () => /SUCCEEDED|FAILED/.test(await fleet.phase(job)), limits);
    return [await fleet.phase(job), fleet.millrace("deploy", "why", job).join("\n")];
  };

  test("runs what the run uploaded, and not what is in the repository", async () => {
    const [phase, why] = await ended();
    equal(phase, "SUCCEEDED", why);
    // The probe answers only for the text that the workflow put in.
    equal(fleet.machines()[0]?.reports[0]?.state, "healthy");
  });

  test("fails with the run, and says which one it was", async () => {
    writeFileSync(join(fleet.repository, "broken"), "");
    fleet.commit(service, "// two, again\n");
    const [phase, why] = await ended();
    equal(phase, "FAILED");
    match(why, /build failed: the build, j\S+, has ended FAILED.*the run j\S+ has ended FAILED/);
  });
});
