/** What a node's HTTP addresses refuse, and what they do not reveal: against a whole node. */
import { doesNotMatch, equal, match, ok } from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";

const grants = {
  ops: { tenant: "*", roles: ["operator"] },
  anna: { tenant: "a", roles: ["member"] },
  berta: { tenant: "b", roles: ["member"] },
  reader: { tenant: "a", roles: ["cache-reader"] },
  viewer: { tenant: "a", roles: ["viewer"] },
} as const;
type Who = keyof typeof grants;
const tokenOf = (who: Who): string => `${who}-token-0123456789-0123456789-0123456789`;
const tokens = Object.entries(grants).map(([name, grant]) => ({
  name,
  ...grant,
  sha256: tokenSha256(tokenOf(name as Who)),
}));

describe("a node's HTTP addresses", () => {
  let path: string;
  let node: Running;
  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-http-"));
    const config = Config.parse({
      cluster: { shards: 1 },
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      build: { blobMax: "1MiB" },
    });
    node = await startNode(config, dataFolder(path), { log: () => {} });
  });
  after(async () => {
    await node.stop();
    await rm(path, { recursive: true });
  });

  const ask = (who: Who, address: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${tokenOf(who)}`);
    return fetch(`http://127.0.0.1:${node.edgePorts[0]}${address}`, { ...init, headers });
  };
  const put = (bytes: Buffer): Promise<Response> =>
    ask("anna", `/v1/build-cache/blobs/${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`, {
      method: "PUT",
      body: new Uint8Array(bytes),
    });

  for (const address of ["/v1/build-cache/blobs/%zz", "/v1/builds/j0-1/actions/%zz", "/v1/builds/%zz"])
    test(`${address}: a malformed address is the caller's mistake, not ours`, async () => {
      const response = await ask("anna", address);
      ok(response.status === 400 || response.status === 404, String(response.status));
    });

  test("the blob size limit applies here too", async () => {
    equal((await put(randomBytes(1000))).status, 204);
    equal((await put(randomBytes(1024 * 1024 + 1))).status, 413);
  });

  test("the body of a caller that may not submit builds is not read", async () => {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", body: "not even JSON", headers };
    equal((await ask("reader", "/v1/builds", init)).status, 403);
    equal((await ask("anna", "/v1/builds", init)).status, 400);
  });

  // Parsing a megabyte of YAML takes a minute, and blocks everything else meanwhile.
  test("a build is JSON: YAML is parsed by the client", async () => {
    const response = await ask("anna", "/v1/builds", {
      method: "POST",
      headers: { "content-type": "application/yaml" },
      body: "actions: {}",
    });
    equal(response.status, 415);
    match(await response.text(), /JSON/);
  });

  test("a caller of one tenant sees its own metrics, and no other tenant's", async () => {
    for (const who of ["anna", "berta"] as const) {
      const body = randomBytes(10).toString("hex");
      const put = await ask(who, `/cas/${createHash("sha256").update(body).digest("hex")}`, { method: "PUT", body });
      ok(put.ok, String(put.status));
    }
    const all = await (await ask("ops", "/metrics")).text();
    match(all, /millrace_store_bytes_total\{[^}]*tenant="a"/);
    match(all, /millrace_store_bytes_total\{[^}]*tenant="b"/);
    const own = await (await ask("viewer", "/metrics")).text();
    match(own, /millrace_store_bytes_total\{[^}]*tenant="a"/);
    doesNotMatch(own, /tenant="(?!a")/);
    match(own, /millrace_edge_calls_total/);
  });
});
