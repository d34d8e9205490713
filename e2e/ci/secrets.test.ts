/** Secrets and variables of owners, repositories and environments, as `gh` and `millrace ci secret` set them. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { runLine } from "#cli/line.ts";
import { sodium } from "#doors/ci/secrets/boxes.ts";
import { clearAway } from "#testing/clear-away.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const show = (name: string): string => `$(printf %s "$${name}" | tr 'a-z' 'b-za')`;
const workflow = `
on: workflow_dispatch
env:
  WIDE: \${{ secrets.WIDE }}
  OWN: \${{ secrets.OWN }}
  NARROW: \${{ secrets.NARROW }}
jobs:
  plain:
    runs-on: ubuntu-latest
    steps:
      - run: echo "plain ${show("WIDE")} ${show("OWN")} [$NARROW] \${{ vars.PLACE }} $OWN"
  deploys:
    runs-on: ubuntu-latest
    environment: Production
    steps:
      - run: echo "deploys ${show("WIDE")} ${show("OWN")} ${show("NARROW")} \${{ vars.PLACE }}"
`;

test("secrets are sealed on their way, and the narrowest counts", { timeout: 90_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-secrets-"));
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow });
  const settings = { edge: { listen: ["127.0.0.1:0"] }, cluster: { shards: 1 }, node: { stopWithin: "100ms" } };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const base = `http://127.0.0.1:${node.edgePorts[0]}`;
    const ci = new CiNode(base, () => node.owner);
    await ci.register("mill/flour", repository.folder);
    const said: string[] = [];
    const note = (line: string): void => void said.push(line);
    const line = async (...words: readonly string[]): Promise<number> =>
      await runLine([...words, "--server", base], {
        env: { MILLRACE_TOKEN: node.owner },
        out: note,
        note,
        progress() {},
      } as never);
    const set = async (name: string, value: string, ...where: readonly string[]): Promise<void> => {
      await writeFile(join(folder, "value"), value);
      equal(await line("ci", "secret", "set", name, "--file", join(folder, "value"), ...where), 0, said.join("\n"));
    };
    await set("wide", "wide1", "--owner", "mill");
    await set("own", "owner1", "--owner", "mill");
    await set("OWN", "repo11", "--repository", "mill/flour");
    await set("NARROW", "narrow1", "--repository", "mill/flour", "--environment", "production");
    await set("TINY", "x", "--repository", "mill/flour");
    match(said.join("\n"), /TINY: it has fewer than 3 characters/);
    for (const [value, ...where] of [
      ["owners", "--owner", "mill"],
      ["environments", "--repository", "mill/flour", "--environment", "PRODUCTION"],
    ])
      equal(await line("ci", "var", "set", `PLACE=${value}`, ...where), 0, said.join("\n"));

    const api = async (method: string, path: string, body?: unknown): Promise<Response> =>
      await fetch(`${base}/api/v3/repos/mill/flour${path}`, {
        method,
        headers: { authorization: `token ${node.owner}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const { key, key_id: keyId } = (await (await api("GET", "/actions/secrets/public-key")).json()) as {
      key: string;
      key_id: string;
    };
    const box = (await sodium()).crypto_box_seal("dddd", Buffer.from(key, "base64"));
    const body = { encrypted_value: Buffer.from(box).toString("base64"), key_id: keyId };
    equal((await api("PUT", "/actions/secrets/GONE", body)).status, 201);
    equal((await api("PUT", "/actions/secrets/GITHUB_X", body)).status, 400);
    equal((await api("PUT", "/actions/secrets/GONE", { ...body, key_id: "1" })).status, 400);
    const listed = (await (await api("GET", "/actions/secrets?per_page=2")).json()) as {
      total_count: number;
      secrets: readonly { name: string }[];
    };
    deepEqual([listed.total_count, listed.secrets.map(({ name }) => name)], [3, ["GONE", "OWN"]]);
    ok(!JSON.stringify(listed).includes("repo11"));
    equal((await api("DELETE", "/actions/secrets/gone")).status, 204);
    equal((await api("DELETE", "/actions/secrets/gone")).status, 404);

    const run = await ci.dispatch("mill/flour", "w");
    equal((await ci.ended(run)).conclusion, "success");
    match(await ci.log(run, "plain"), /plain xjef1 sfqp11 \[\] owners \*\*\*/);
    match(await ci.log(run, "deploys"), /deploys xjef1 sfqp11 obsspx1 environments/);
  } finally {
    await node.stop();
    clearAway(folder);
  }
});
