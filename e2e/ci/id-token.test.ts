/** Steps ask for tokens that say who they are, with the official client; a verifier reads the keys by discovery. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { whoOf } from "#doors/ci/services/id-token.ts";
import { Issuer } from "#issuer/issuer.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { newKeyLine, parseKeys } from "#vault/key-list.ts";
import { openVault } from "#vault/vault.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const client = import.meta.resolve("@actions/core");

/** Sends what the official client gets to the test, and what an audience that is the cluster's own gets. */
const ask = (url: string): string => `
  const core = await import(${JSON.stringify(client)});
  const own = await core.getIDToken("millrace").catch((error) => error.message);
  await fetch(${JSON.stringify(url)}, { method: "POST", body: JSON.stringify({
    token: await core.getIDToken("sts.example.org"), own,
    request: [process.env.ACTIONS_ID_TOKEN_REQUEST_URL, process.env.ACTIONS_ID_TOKEN_REQUEST_TOKEN],
  }) });`;

const workflow = (url: string): string => `
on: workflow_dispatch
jobs:
  known:
    runs-on: ubuntu-latest
    permissions: { id-token: write }
    steps:
      - run: '"$NODE" --input-type=module -e "$ASK"'
        env: { NODE: ${JSON.stringify(process.execPath)}, ASK: ${JSON.stringify(ask(url))} }
      - run: |
          echo "asks with $ACTIONS_ID_TOKEN_REQUEST_TOKEN"
          auth="authorization: Bearer \${{ github.token }}"
          status() { curl -s -o /dev/null -w '%{http_code}' -H "$auth" "$GITHUB_API_URL/repos/mill/flour$1"; }
          echo "contents $(status /branches)"
          echo "metadata $(status)"
  unknown:
    runs-on: ubuntu-latest
    steps:
      - run: echo "none [$ACTIONS_ID_TOKEN_REQUEST_URL$ACTIONS_ID_TOKEN_REQUEST_TOKEN]"
`;

type Said = { readonly token: string; readonly own: string; readonly request: readonly [string, string] };

async function listener() {
  const said = Promise.withResolvers<Said>();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      said.resolve(JSON.parse(body) as Said);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, said: said.promise, close: () => server.close() };
}

test("a verifier accepts a step's token for its audience, and no other", { timeout: 90_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-id-token-"));
  const outside = await listener();
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow(outside.url) });
  const settings = { edge: { listen: ["127.0.0.1:0"] }, cluster: { shards: 1 }, node: { stopWithin: "100ms" } };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const base = `http://127.0.0.1:${node.edgePorts[0]}`;
    const ci = new CiNode(base, () => node.owner);
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "w");
    const { conclusion } = await ci.ended(run);
    const log = await ci.log(run, "known");
    equal(conclusion, "success", log);
    const { token, own, request } = await outside.said;
    const found = (await (await fetch(`${base}/.well-known/openid-configuration`)).json()) as Record<string, string>;
    const { issuer = "", jwks_uri: keysAt = "" } = found;
    const keys = createRemoteJWKSet(new URL(keysAt));
    const rules = { issuer, audience: "sts.example.org" };
    const { payload } = await jwtVerify(token, keys, rules);
    equal(payload.sub, "repo:mill/flour:ref:refs/heads/main");
    deepEqual(
      ["repository", "event_name", "ref", "workflow_ref", "run_attempt", "tenant"].map((name) => payload[name]),
      [
        "mill/flour",
        "workflow_dispatch",
        "refs/heads/main",
        "mill/flour/.github/workflows/w.yml@refs/heads/main",
        "1",
        "default",
      ],
    );
    await rejects(jwtVerify(token, keys, { ...rules, audience: "other.example.org" }), { claim: "aud" });
    await rejects(jwtVerify(token, keys, { ...rules, issuer: "https://elsewhere.example.org" }), { claim: "iss" });
    const late = new Date(Date.now() + 3_600_000);
    await rejects(jwtVerify(token, keys, { ...rules, currentDate: late }), { code: "ERR_JWT_EXPIRED" });
    equal((await fetch(`${base}/v1/runs`, { headers: { authorization: `Bearer ${token}` } })).status, 401);
    ok(own.includes("400"), `the cluster's own audience is refused: ${own}`);
    ok(!log.includes("eyJ") && log.includes("asks with ***"), "the token to ask with is masked");
    ok(log.includes("contents 403") && log.includes("metadata 200"), "a scope that is not named gives nothing");
    ok((await ci.log(run, "unknown")).includes("none []"), "no permission, no way to ask");
    const asks = { headers: { authorization: `Bearer ${request[1]}` } };
    const status = async () => (await fetch(`${request[0]}&audience=x`, asks)).status;
    // that a claim is live is believed for a second
    await until("the way to ask ends with the job", async () => (await status()) === 403, { limitMs: 60_000 });
  } finally {
    await node.stop();
    outside.close();
    clearAway(folder);
  }
});

test("a verifier that trusts one tenant's repository refuses that of another, of the same name", async () => {
  const clock = new ManualClock(Date.now());
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const line = newKeyLine();
  const vault = openVault({ records, source: { read: async () => parseKeys(line, "test") }, clock }, "system");
  const issuer = new Issuer({ name: "https://ci.example.org", clock, vault });
  const github = { repository: "mill/flour", ref: "refs/heads/main", event_name: "push" };
  const tokenOf = async (tenant: string): Promise<string> => {
    const { subject, claims } = whoOf(github, { tenant, task: "t0-1" });
    return (await issuer.issue({ audience: "sts.example.org", subject, forMs: 600_000, claims })).token;
  };
  const keyOf = async () => {
    const [key] = (await issuer.keys.ring()).trusted;
    ok(key);
    return key.publicKey;
  };
  const rules = { issuer: "https://ci.example.org", audience: "sts.example.org" };
  for (const [own, other] of [
    ["default", "globex"],
    ["acme", "default"],
    ["acme", "globex"],
  ] as const) {
    const { subject } = whoOf(github, { tenant: own, task: "t0-1" });
    const trust = async (token: string) => {
      const { payload } = await jwtVerify(token, await keyOf(), rules);
      if (payload.sub !== subject) throw new Error(`untrusted: ${payload.sub}`);
    };
    await trust(await tokenOf(own));
    await rejects(async () => await trust(await tokenOf(other)), /untrusted/);
  }
});
