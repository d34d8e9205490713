/** Containers of jobs on a node: placed where they can run, and gone when the node is killed in the middle. */
import { match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { whyRun } from "#doors/ci/why/endpoints.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { image, podmanMissing, TestPodman } from "#testing/podman.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const service = `{ web: { image: ${image}, entrypoint: sleep, command: "600" } }`;
const workflow = `
on: { workflow_dispatch: { inputs: { wait: { type: boolean } } } }
jobs:
  a:
    runs-on: ubuntu-latest
    container: ${image}
    services: ${service}
    steps:
      - uses: actions/checkout@v4
      - run: cat words.txt; echo holding; if [ "\${{ inputs.wait }}" = true ]; then sleep 600; fi
`;
const wait = { limitMs: 60_000, everyMs: 100 };

test(
  "a node runs containers, leaves none when it is killed, and says where none can run",
  { skip: podmanMissing(), timeout: 280_000 },
  async () => {
    using podman = new TestPodman();
    using repository = new TestRepository({ ".github/workflows/w.yml": workflow, "words.txt": "grain\n" });
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-containers-"));
    const worker = { enabled: true, slots: 2 };
    const node = await NodeProcess.open(folder, { worker, ci: { containers: { engine: podman.command } } });
    const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
    const plainFolder = mkdtempSync(join(tmpdir(), "millrace-ci-containers-none-"));
    try {
      const label = "millrace.node"; // networks of others are there only while their tests run
      await ci.register("mill/flour", repository.folder);
      const first = await ci.dispatch("mill/flour", "w");
      const shown = await ci.ended(first);
      ok(shown.conclusion === "success", `${await ci.log(first, "a").catch(String)}\n${JSON.stringify(shown)}`);
      match(await ci.log(first, "a"), /\| grain\n[^]*\| holding\n/);
      await until("nothing is left", () => podman.left(label).length === 0, wait);

      const second = await ci.dispatch("mill/flour", "w", { inputs: { wait: "true" } });
      await until("it holds", async () => (await ci.log(second, "a").catch(() => "")).includes("| holding"), wait);
      ok(podman.left(label).length >= 3, podman.left(label).join(" "));
      await node.kill();
      await until("its containers are gone", () => podman.left(label).length === 0, wait);

      await using plain = await NodeProcess.open(plainFolder, { worker, ci: { containers: { engine: "none" } } });
      const other = new CiNode(`http://${plain.address}`, () => readOwnerToken(dataFolder(plainFolder)) ?? "");
      await other.register("mill/flour", repository.folder);
      const third = await other.dispatch("mill/flour", "w");
      const lines = async (): Promise<string> =>
        (await callEndpoint(other.fetch, whyRun, { params: { run: third } })).lines.join("\n");
      await until("why says it", async () => /needs podman or docker/.test(await lines()), wait);
    } finally {
      await node[Symbol.asyncDispose]();
      for (const one of [folder, plainFolder]) clearAway(one);
    }
  },
);
