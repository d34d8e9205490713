/** What the services refuse, and how they say so: forged and expired addresses, wrong lists of blocks, too much. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { openLab, tokenFor, type HeldJob, type Lab } from "./lab.ts";

const MiB = 1024 * 1024;
type Answer = { readonly status: number; readonly body: Record<string, unknown> };

describe("services refuse", { timeout: 60_000 }, () => {
  let lab: Lab;
  let job: HeldJob;
  let token: string;
  before(async () => {
    lab = await openLab({ artifactBytesMax: 2 * MiB, blocksMax: 3, artifactsPerRunMax: 4, blockBytesMax: MiB });
    job = await lab.hold();
    token = (await lab.env(job)).actionEnv["ACTIONS_RUNTIME_TOKEN"] ?? "";
  });
  after(() => lab[Symbol.asyncDispose]());

  async function twirp(method: string, more: object, as = token): Promise<Answer> {
    const ids = { workflow_run_backend_id: job.run, workflow_job_run_backend_id: job.task };
    const response = await fetch(`${lab.origin}/twirp/github.actions.results.api.v1.${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${as}`, "content-type": "application/json" },
      body: JSON.stringify({ ...ids, ...more }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  const create = async (name: string): Promise<string> => {
    const { status, body } = await twirp("ArtifactService/CreateArtifact", { name, version: 4 });
    equal(status, 200, JSON.stringify(body));
    return String(body["signed_upload_url"]);
  };
  const put = async (url: string, query: string, body: string | Uint8Array): Promise<Answer> => {
    const response = await fetch(`${url}${query}`, { method: "PUT", body: body as string });
    const text = await response.text();
    return { status: response.status, body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
  };
  const block = (id: string): string => `&comp=block&blockid=${encodeURIComponent(Buffer.from(id).toString("base64"))}`;
  const list = (...ids: readonly string[]): string =>
    `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids
      .map((id) => `<Latest>${Buffer.from(id).toString("base64")}</Latest>`)
      .join("")}</BlockList>`;

  test("names that lead out of a folder, and too many of them", async () => {
    for (const name of ["../up", "a/b", "a\\b", "..", "", "x\ny", "nul\u0000"]) {
      const { status, body } = await twirp("ArtifactService/CreateArtifact", { name, version: 4 });
      equal(status, 400, name);
      match(String(body["msg"]), /is not valid/);
    }
  });

  test("an address that was changed, has expired, or is for something else", async () => {
    const url = await create("addressed");
    equal((await put(url.replace(/sig=.{5}/, "sig=AAAAA"), block("a"), "x")).status, 403);
    equal((await put(url.replace("/upload/mill/", "/upload/other/"), block("a"), "x")).status, 403);
    equal((await fetch(url)).status, 405, "an upload's address does not download");
    const { pathname } = new URL(url);
    const expired = await lab.services.sign(lab.origin, {
      does: "upload",
      tenant: "mill",
      id: pathname.split("/")[5] ?? "",
      fileName: "x",
    });
    const past = expired.replace(/se=\d+/, "se=1000");
    equal((await put(past, block("a"), "x")).status, 403);
    match(String((await put(past, block("a"), "x")).body["title"]), /not made by this cluster|expired/);
  });

  test("blocks that are missing, too large or too many; wrong lists, sizes and digests", async () => {
    const url = await create("blocks");
    equal((await put(url, block("a"), new Uint8Array(MiB + 1))).status, 413);
    equal((await put(url, "&comp=block&blockid=..%2F..%2Fx", "x")).status, 400);
    equal((await put(url, "&comp=blocklist", list("a"))).status, 400);
    match(String((await put(url, "&comp=blocklist", list("missing"))).body["title"]), /not sent/);
    for (const xml of ["", "<x/>", '<!DOCTYPE x [<!ENTITY a "b">]><BlockList>&a;</BlockList>', `${list("a")}<more/>`])
      equal((await put(url, "&comp=blocklist", xml)).status, 400, xml);
    for (const id of ["a", "b", "c"]) equal((await put(url, block(id), `part ${id};`)).status, 201);
    equal((await put(url, block("d"), "x")).status, 413, "one block more than there may be");
    equal((await put(url, block("a"), "part A;")).status, 201, "a block may be sent again");
    equal((await put(url, "&comp=blocklist", list("c", "a"))).status, 201);
    const finalize = (size: number, hash: string): Promise<Answer> =>
      twirp("ArtifactService/FinalizeArtifact", { name: "blocks", size: String(size), hash });
    equal((await finalize(13, "")).status, 400);
    match(String((await finalize(14, `sha256:${"0".repeat(64)}`)).body["msg"]), /bytes are sha256:/);
    equal((await twirp("ArtifactService/ListArtifacts", {})).body["artifacts"]?.toString(), "", "it is not shown yet");
    const sha256 = createHash("sha256").update("part c;part A;").digest("hex");
    equal((await finalize(14, `sha256:${sha256}`)).status, 200);
    const headers = { authorization: `Bearer ${tokenFor("ann")}` };
    const kept = await fetch(`${lab.origin}/v1/kept`, { headers });
    const { items } = (await kept.json()) as { items: readonly { name: string; bytes: number; until: string }[] };
    deepEqual(
      items.map(({ name, bytes }) => [name, bytes]),
      [[`ci.artifact/${job.run}/blocks`, 14]],
    );
    ok(Date.parse(items[0]?.until ?? "") > Date.now() + 89 * 24 * 3_600_000);
    const { body } = await twirp("ArtifactService/GetSignedArtifactURL", { name: "blocks" });
    const address = String(body["signed_url"]);
    equal(await (await fetch(address)).text(), "part c;part A;");
    const part = await fetch(address, { headers: { range: "bytes=5-8" } });
    equal(`${part.status} ${part.headers.get("content-range")} ${await part.text()}`, "206 bytes 5-8/14 c;pa");
    equal((await fetch(address, { headers: { range: "bytes=99-" } })).status, 416);
    equal((await put(url, block("a"), "late")).status, 404, "the upload is over");
  });

  test("a whole run's worth of artifacts, and bodies that are no JSON", async () => {
    await create("three");
    await create("four");
    const fifth = await twirp("ArtifactService/CreateArtifact", { name: "five", version: 4 });
    equal(fifth.status, 429);
    match(String(fifth.body["msg"]), /insufficient usage/);
    equal((await twirp("ArtifactService/CreateArtifact", { name: 7 })).status, 400);
    equal((await twirp("ArtifactService/NoSuchMethod", {})).status, 404);
    equal((await twirp("CacheService/CreateCacheEntry", { key: "a,b", version: "1" })).status, 400);
    equal((await twirp("CacheService/CreateCacheEntry", { key: "x".repeat(513), version: "1" })).status, 400);
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${token.split(".")[1]}.`;
    equal((await twirp("ArtifactService/ListArtifacts", {}, none)).status, 401);
    equal((await twirp("ArtifactService/ListArtifacts", {}, (await lab.env(job)).token)).status, 401, "another use");
    const expired = await lab.env(job, { untilMs: Date.now() - 10_000 });
    equal((await twirp("ArtifactService/ListArtifacts", {}, expired.actionEnv["ACTIONS_RUNTIME_TOKEN"])).status, 401);
    ok(lab.node.edgePorts.length > 0);
  });
});
