/** Every HTTP cache over a real port, as a table of requests and answers; REAPI-94 and the tools' own rules. */
import { equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { after, before, describe, test } from "node:test";
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { until } from "#testing/until.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { ActionResult, OutputFile } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { startRig, tokenOf, type Rig, type Step } from "#app/testing/http-caches.ts";

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function suite(name: string, steps: readonly Step[], limits: Parameters<typeof startRig>[0] = {}): void {
  describe(name, () => {
    let rig: Rig;
    before(async () => (rig = await startRig(limits)));
    after(async () => {
      await rig[Symbol.asyncDispose]();
      equal(rig.reported.length, 0, String(rig.reported[0]));
    });
    for (const step of steps) test(`${step.does}: ${step.ask}`, () => follow(rig, step));
  });
}

async function follow(rig: Rig, step: Step): Promise<void> {
  const [method = "GET", path = ""] = step.ask.split(" ");
  const who = "as" in step ? step.as : "writer";
  const response = await fetch(`${rig.url}${path}`, {
    method,
    headers: { ...(who && { authorization: `Bearer ${tokenOf(who)}` }), ...step.headers },
    ...(step.body !== undefined && { body: step.body }),
  });
  const said = await response.text();
  equal(response.status, step.gets, said);
  if (typeof step.says === "string") equal(said, step.says);
  else if (step.says) match(said, step.says);
  for (const [header, value] of Object.entries(step.with ?? {}))
    if (value instanceof RegExp) match(response.headers.get(header) ?? "", value);
    else equal(response.headers.get(header), value, header);
}

/** A result with one file in it. */
function resultOf(text: string): Uint8Array<ArrayBuffer> {
  const digest = { hash: sha256(text), sizeBytes: text.length };
  const file = { ...decode(OutputFile, new Uint8Array()), path: "out", digest };
  return Uint8Array.from(encode(ActionResult, { ...decode(ActionResult, new Uint8Array()), outputFiles: [file] }));
}

const words = "to the mill, ".repeat(100);
const hash = sha256(words);
const result = resultOf(words);
const ghost = resultOf("never uploaded");
const action = sha256("an action");
const basic = `Basic ${btoa(`anybody:${tokenOf("reader")}`)}`;

suite("94: Bazel's HTTP cache", [
  { does: "a blob that is not there is 404", ask: `GET /cas/${hash}`, gets: 404 },
  { does: "HEAD says the same", ask: `HEAD /cas/${hash}`, gets: 404 },
  { does: "a blob is verified", ask: `PUT /cas/${hash}`, body: "false", gets: 400, says: /another digest/ },
  { does: "and what was refused is not there", ask: `GET /cas/${hash}`, gets: 404 },
  { does: "a blob is kept", ask: `PUT /cas/${hash}`, body: words, gets: 200 },
  { does: "once more changes nothing", ask: `PUT /cas/${hash}`, body: words, gets: 200 },
  {
    does: "and read",
    ask: `GET /cas/${hash}`,
    headers: { "accept-encoding": "identity" },
    gets: 200,
    says: words,
    with: { etag: `"${hash}"`, "content-length": "1300", "content-encoding": null },
  },
  { does: "HEAD tells its size", ask: `HEAD /cas/${hash}`, gets: 200, says: "", with: { "content-length": "1300" } },
  { does: "below an instance too", ask: `GET /team/main/cas/${hash}`, gets: 200, says: words },
  {
    does: "in part",
    ask: `GET /cas/${hash}`,
    headers: { range: "bytes=3-10" },
    gets: 206,
    says: "the mill",
    with: { "content-range": "bytes 3-10/1300", "content-length": "8" },
  },
  { does: "its end", ask: `GET /cas/${hash}`, headers: { range: "bytes=-6" }, gets: 206, says: "mill, " },
  {
    does: "beyond its end is 416",
    ask: `GET /cas/${hash}`,
    headers: { range: "bytes=1300-" },
    gets: 416,
    with: { "content-range": "bytes */1300" },
  },
  { does: "nonsense is no range", ask: `GET /cas/${hash}`, headers: { range: "lines=1-2" }, gets: 200, says: words },
  {
    does: "a part of another version is no part",
    ask: `GET /cas/${hash}`,
    headers: { range: "bytes=0-1", "if-range": '"other"' },
    gets: 200,
    says: words,
  },
  {
    does: "known bytes are not sent again",
    ask: `GET /cas/${hash}`,
    headers: { "if-none-match": `"${hash}"` },
    gets: 304,
  },
  { does: "the empty blob is always there", ask: `GET /cas/${sha256("")}`, gets: 200, says: "" },
  { does: "a hash is written small", ask: `GET /cas/${hash.toUpperCase()}`, gets: 400 },
  { does: "and whole", ask: `GET /cas/${hash.slice(1)}`, gets: 400 },
  { does: "there is no POST", ask: `POST /cas/${hash}`, body: "", gets: 405, with: { allow: "GET, HEAD, PUT" } },
  { does: "a result that is not there is 404", ask: `GET /ac/${action}`, gets: 404 },
  { does: "what is no result is refused", ask: `PUT /ac/${action}`, body: "raw bytes of ccache", gets: 400 },
  { does: "a result is kept", ask: `PUT /ac/${action}`, body: result, gets: 200 },
  { does: "and read", ask: `GET /ac/${action}`, gets: 200, says: /out/ },
  { does: "an instance has results of its own", ask: `GET /main/ac/${action}`, gets: 404 },
  { does: "a result may name what is not there yet", ask: `PUT /ghost/ac/${action}`, body: ghost, gets: 200 },
  {
    does: "but is a miss as long as that is so",
    ask: `GET /ghost/ac/${action}`,
    gets: 404,
    says: /1 blobs are not here/,
  },
  {
    does: "moon keeps results as JSON",
    ask: `PUT /moon-outputs/ac/${action}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ output_files: [{ path: "o", digest: { hash, size_bytes: words.length } }] }),
    gets: 200,
  },
  {
    does: "and gets them back as such",
    ask: `GET /moon-outputs/ac/${action}`,
    gets: 200,
    says: /output_files/,
    with: { "content-type": "application/json" },
  },
  {
    does: "JSON is looked into as well",
    ask: `PUT /moon-outputs/ac/${action}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ outputFiles: [{ path: "o", digest: { hash: "nonsense", sizeBytes: "1" } }] }),
    gets: 400,
  },
  {
    does: "no credentials: 401",
    as: undefined,
    ask: `GET /cas/${hash}`,
    gets: 401,
    with: { "www-authenticate": /Basic/ },
  },
  {
    does: "wrong ones: 401",
    as: undefined,
    ask: `GET /cas/${hash}`,
    headers: { authorization: "Bearer nobody" },
    gets: 401,
  },
  {
    does: "a password is a token",
    as: undefined,
    ask: `GET /cas/${hash}`,
    headers: { authorization: basic },
    gets: 200,
  },
  { does: "a reader reads", as: "reader", ask: `GET /ac/${action}`, gets: 200 },
  { does: "and writes nothing", as: "reader", ask: `PUT /cas/${hash}`, body: words, gets: 403 },
  { does: "an uploader uploads", as: "uploader", ask: `PUT /cas/${hash}`, body: words, gets: 200 },
  { does: "and says not what a result is", as: "uploader", ask: `PUT /ac/${action}`, body: result, gets: 403 },
  { does: "B5: another tenant sees nothing", as: "other", ask: `GET /cas/${hash}`, gets: 404 },
  { does: "B5: of results neither", as: "other", ask: `GET /ac/${action}`, gets: 404 },
  { does: "a result can be taken back", ask: `DELETE /ac/${action}`, gets: 204 },
  { does: "once", ask: `DELETE /ac/${action}`, gets: 404 },
]);

suite("ccache keeps raw bytes in all its layouts", [
  { does: "bazel", ask: `PUT /ccache/ac/${action}`, body: "raw", gets: 201 },
  { does: "bazel", ask: `GET /ccache/ac/${action}`, gets: 200, says: "raw" },
  { does: "apart from Bazel's results", ask: `GET /ac/${action}`, gets: 404 },
  { does: "subdirs", ask: "PUT /ccache/ab/cdef0123", body: "sub", gets: 201 },
  { does: "subdirs", ask: "GET /ccache/ab/cdef0123", gets: 200, says: "sub" },
  { does: "subdirs", ask: "HEAD /ccache/ab/cdef0123", gets: 200 },
  { does: "flat", ask: "PUT /ccache/abcdef0123", body: "flat", gets: 201 },
  { does: "flat", ask: "GET /ccache/abcdef0123", gets: 200, says: "flat" },
  { does: "what it wrote again is what counts", ask: "PUT /ccache/abcdef0123", body: "newer", gets: 201 },
  { does: "what it wrote again is what counts", ask: "GET /ccache/abcdef0123", gets: 200, says: "newer" },
  { does: "what it removes is gone", ask: "DELETE /ccache/abcdef0123", gets: 204 },
  { does: "what it removes is gone", ask: "GET /ccache/abcdef0123", gets: 404 },
  { does: "a reader reads", as: "reader", ask: "GET /ccache/ab/cdef0123", gets: 200 },
  { does: "and removes nothing", as: "reader", ask: "DELETE /ccache/ab/cdef0123", gets: 403 },
  { does: "another tenant sees nothing", as: "other", ask: "GET /ccache/ab/cdef0123", gets: 404 },
  { does: "nobody climbs out", ask: "GET /ccache/ab/%2e%2e/x", gets: 404 },
  { does: "nor writes strange names", ask: "PUT /ccache/a%00b", body: "x", gets: 400 },
]);

const file = "/sccache/team/a/b/c/abc0123";
suite("sccache's WebDAV", [
  { does: "its check misses at first", ask: "GET /sccache/.sccache_check", gets: 404 },
  { does: "its check can be written", ask: "PUT /sccache/.sccache_check", body: "Hello, World!", gets: 201 },
  { does: "and read", ask: "GET /sccache/.sccache_check", gets: 200, says: "Hello, World!" },
  { does: "who may only read is told so", as: "reader", ask: "PUT /sccache/.sccache_check", body: "x", gets: 403 },
  {
    does: "every folder is there",
    ask: "PROPFIND /sccache/team/a/",
    headers: { depth: "0" },
    gets: 207,
    says: /<D:collection\/>/,
  },
  { does: "and can be made", ask: "MKCOL /sccache/team/a/b/c/", gets: 201 },
  { does: "a file is not there", ask: `PROPFIND ${file}`, headers: { depth: "0" }, gets: 404 },
  { does: "until it is written", ask: `PUT ${file}`, body: words, gets: 201 },
  {
    does: "then its size and time are told",
    ask: `PROPFIND ${file}`,
    headers: { depth: "0" },
    gets: 207,
    says: /<D:resourcetype\/><D:getcontentlength>1300<\/D:getcontentlength><D:getlastmodified>\w{3}, \d\d \w{3} \d{4} /,
  },
  { does: "it is read", ask: `GET ${file}`, gets: 200, says: words, with: { "last-modified": /GMT$/ } },
  { does: "in part", ask: `GET ${file}`, headers: { range: "bytes=0-1" }, gets: 206, says: "to" },
  {
    does: "a folder tells what is in it",
    ask: "PROPFIND /sccache/team/a/b/c/",
    headers: { depth: "1" },
    gets: 207,
    says: /abc0123<\/D:href>/,
  },
  {
    does: "and its folders",
    ask: "PROPFIND /sccache/team/",
    headers: { depth: "1" },
    gets: 207,
    says: /<D:href>\/sccache\/team\/a\/<\/D:href>/,
  },
  { does: "not all below it", ask: "PROPFIND /sccache/", headers: { depth: "infinity" }, gets: 403 },
  { does: "it is removed", ask: `DELETE ${file}`, gets: 204 },
  { does: "and gone", ask: `GET ${file}`, gets: 404 },
  { does: "what it can do", ask: "OPTIONS /sccache/", gets: 200, with: { dav: "1", allow: /PROPFIND/ } },
]);

const key = "0123456789abcdef0123456789abcdef";
const gradleType = "application/vnd.gradle.build-cache-artifact.v2";
suite(
  "Gradle's build cache",
  [
    { does: "a miss", ask: `GET /gradle/${key}`, gets: 404 },
    { does: "an entry", ask: `PUT /gradle/${key}`, headers: { "content-type": gradleType }, body: "entry", gets: 204 },
    { does: "a hit", ask: `GET /gradle/${key}`, gets: 200, says: "entry", with: { "content-type": gradleType } },
    { does: "projects apart", ask: `GET /gradle/mine/${key}`, gets: 404 },
    { does: "too big", ask: `PUT /gradle/${key}`, body: "x".repeat(5_000), gets: 413 },
    { does: "what was too big changes nothing", ask: `GET /gradle/${key}`, gets: 200, says: "entry" },
    { does: "no key", ask: "GET /gradle/a/b%20c", gets: 400 },
    { does: "who may only read", as: "reader", ask: `PUT /gradle/${key}`, body: "x", gets: 403 },
  ],
  { bytesMax: 4_096 },
);

suite("Turborepo's cache", [
  { does: "is on", ask: "GET /v8/artifacts/status", gets: 200, says: '{"status":"enabled"}' },
  {
    does: "not for strangers",
    as: undefined,
    ask: "GET /v8/artifacts/status",
    gets: 401,
    says: /"code":"unauthorized"/,
  },
  { does: "a miss", ask: "GET /v8/artifacts/0123abcd?slug=mill", gets: 404, says: /"code":"not_found"/ },
  {
    does: "an artifact",
    ask: "PUT /v8/artifacts/0123abcd?slug=mill",
    headers: { "x-artifact-duration": "1234", "x-artifact-tag": "signed" },
    body: words,
    gets: 202,
    says: /"urls":\["http/,
  },
  {
    does: "a hit",
    ask: "GET /v8/artifacts/0123abcd?slug=mill",
    gets: 200,
    says: words,
    with: { "x-artifact-duration": "1234", "x-artifact-tag": "signed" },
  },
  { does: "HEAD", ask: "HEAD /v8/artifacts/0123abcd?slug=mill", gets: 200, with: { "x-artifact-tag": "signed" } },
  { does: "teams apart", ask: "GET /v8/artifacts/0123abcd?teamId=team_other", gets: 404 },
  {
    does: "many at once",
    ask: "POST /v8/artifacts?slug=mill",
    body: JSON.stringify({ hashes: ["0123abcd", "missing"] }),
    gets: 200,
    says: '{"0123abcd":{"size":1300,"taskDurationMs":1234,"tag":"signed"},"missing":null}',
  },
  {
    does: "not too many",
    ask: "POST /v8/artifacts",
    body: JSON.stringify({ hashes: Array(1_001).fill("a") }),
    gets: 400,
  },
  { does: "statistics", ask: "POST /v8/artifacts/events?slug=mill", body: "[]", gets: 200 },
  { does: "no statistics", ask: "POST /v8/artifacts/events", body: "{", gets: 400, says: /"bad_request"/ },
  {
    does: "asks first",
    as: undefined,
    ask: "OPTIONS /v8/artifacts/0123",
    gets: 204,
    with: { "access-control-allow-headers": /authorization/ },
  },
  { does: "readers", as: "reader", ask: "PUT /v8/artifacts/0123abcd", body: "x", gets: 403, says: /"forbidden"/ },
]);

suite("Nx's cache", [
  { does: "a miss", ask: "GET /v1/cache/1234567890", gets: 404 },
  { does: "a record", ask: "PUT /v1/cache/1234567890", body: "record", gets: 202 },
  {
    does: "a hit",
    ask: "GET /v1/cache/1234567890",
    gets: 200,
    says: "record",
    with: { "content-type": "application/octet-stream" },
  },
  { does: "never another", ask: "PUT /v1/cache/1234567890", body: "other", gets: 409 },
  { does: "never another", ask: "GET /v1/cache/1234567890", gets: 200, says: "record" },
  { does: "readers", as: "reader", ask: "PUT /v1/cache/99", body: "x", gets: 403 },
  {
    does: "strangers",
    as: undefined,
    ask: "GET /v1/cache/1234567890",
    gets: 401,
    with: { "content-type": "text/plain" },
  },
]);

test("a revoked entry is a miss in every protocol, and can be written again", async () => {
  await using rig = await startRig();
  const authorization = `Bearer ${tokenOf("writer")}`;
  const ask = async (path: string, body?: string): Promise<number> => {
    const options = body === undefined ? {} : { method: "PUT", body };
    const response = await fetch(`${rig.url}${path}`, { ...options, headers: { authorization } });
    await response.arrayBuffer();
    return response.status;
  };
  const paths = ["/ccache/ab/cd", "/sccache/x", "/gradle/k1", "/v8/artifacts/h1", "/v1/cache/11"];
  for (const path of paths) await ask(path, "poisoned");
  const untilMs = Date.now();
  const rule = { kind: "principal", principal: "writer", untilMs, why: "a leak" } as const;
  await new TrustRules(rig.index).revoke("a", rule, { principal: "ops", atMs: untilMs });
  for (const path of paths) equal(await ask(path), 404, path);
  await until("the clock has moved on", () => Date.now() > untilMs);
  for (const path of paths) ok((await ask(path, "clean")) < 300, path);
  for (const path of paths) equal(await ask(path), 200, path);
});

describe("HTTP itself", () => {
  let rig: Rig;
  before(async () => (rig = await startRig({ bytesMax: 32 * 1024 * 1024, idleMs: 200 })));
  after(() => rig[Symbol.asyncDispose]());
  const authorization = `Bearer ${tokenOf("writer")}`;

  test("requested content codings are used, and uploads may be encoded", async () => {
    for (const [coding, unpack] of [
      ["zstd", zstdDecompressSync],
      ["gzip", gunzipSync],
    ] as const) {
      const pack = coding === "zstd" ? zstdCompressSync : gzipSync;
      const text = `${coding} ${words}`;
      const at = `${rig.url}/cas/${sha256(text)}`;
      const put = await fetch(at, {
        method: "PUT",
        headers: { authorization, "content-encoding": coding },
        body: pack(text),
      });
      equal(put.status, 200, await put.text());
      const raw = await rawGet(at, { authorization, "accept-encoding": coding });
      equal(raw.headers["content-encoding"], coding);
      equal(raw.headers["etag"], `"${sha256(text)}-${coding}"`);
      equal(unpack(raw.body).toString(), text);
    }
    const odd = await fetch(`${rig.url}/cas/${hash}`, {
      method: "PUT",
      headers: { authorization, "content-encoding": "br" },
      body: "x",
    });
    equal(odd.status, 415);
    const broken = await fetch(`${rig.url}/cas/${hash}`, {
      method: "PUT",
      headers: { authorization, "content-encoding": "zstd" },
      body: "x",
    });
    equal(broken.status, 400);
  });

  test("a body without a length is accepted, and cut off if it is too long", async () => {
    const chunks = (count: number) =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (count-- > 0) controller.enqueue(new Uint8Array(1024 * 1024).fill(count));
          else controller.close();
        },
      });
    const put = (path: string, count: number) =>
      fetch(`${rig.url}${path}`, { method: "PUT", headers: { authorization }, body: chunks(count), duplex: "half" });
    equal((await put("/ccache/large", 20)).status, 201);
    const back = await fetch(`${rig.url}/ccache/large`, { headers: { authorization } });
    equal((await back.arrayBuffer()).byteLength, 20 * 1024 * 1024);
    const tooLong = await put("/ccache/larger", 40).catch((error: unknown) => error);
    ok(!(tooLong instanceof Response) || tooLong.status === 413);
    equal((await fetch(`${rig.url}/ccache/larger`, { headers: { authorization } })).status, 404);
    equal((await put("/v1/cache/77", 1)).status, 411);
  });

  test("a client that expects 100-continue gets it only if the body will be accepted", async () => {
    equal((await expecting(rig.port, authorization, 5)).continued, true);
    const refused = await expecting(rig.port, authorization, 40 * 1024 * 1024);
    equal(refused.status, 413);
    equal(refused.continued, false);
    const stranger = await expecting(rig.port, "Bearer nobody", 5);
    equal(stranger.status, 401);
    equal(stranger.continued, false);
  });

  test("a client that sends nothing is disconnected", async () => {
    const { status } = await new Promise<{ status: number }>((resolve, reject) => {
      const request = httpRequest({
        port: rig.port,
        method: "PUT",
        path: "/gradle/slow",
        headers: { authorization, "content-length": 10 },
      });
      request.on("response", (response) => resolve({ status: response.statusCode ?? 0 }));
      request.on("error", reject);
      request.write("half");
    });
    equal(status, 408);
  });

  test("HTTP/2 carries the same", async () => {
    const session = connectHttp2(rig.url);
    const ask = (headers: Record<string, string>, body?: string): Promise<{ status: number; text: string }> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ...headers, authorization }, { endStream: body === undefined });
        let text = "";
        let status = 0;
        stream.on("response", (got) => (status = Number(got[":status"])));
        stream.on("data", (part: Buffer) => (text += part.toString()));
        stream.on("end", () => resolve({ status, text }));
        stream.on("error", reject);
        if (body !== undefined) stream.end(body);
      });
    equal((await ask({ ":method": "PUT", ":path": `/cas/${hash}` }, words)).status, 200);
    equal((await ask({ ":method": "GET", ":path": `/cas/${hash}` })).text, words);
    equal((await ask({ ":method": "HEAD", ":path": `/cas/${hash}` })).status, 200);
    session.close();
  });

  test("a path that no cache owns is not found", async () => {
    equal((await fetch(`${rig.url}/nothing`)).status, 404);
    equal((await fetch(`${rig.url}/livez`)).status, 200);
  });
});

type Raw = { readonly headers: Record<string, unknown>; readonly body: Buffer };

function rawGet(url: string, headers: Record<string, string>): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(parts) }));
    });
    request.on("error", reject);
    request.end();
  });
}

function expecting(
  port: number,
  authorization: string,
  length: number,
): Promise<{ continued: boolean; status: number }> {
  return new Promise((resolve, reject) => {
    let continued = false;
    const request = httpRequest({
      port,
      method: "PUT",
      path: "/gradle/expecting",
      headers: { authorization, expect: "100-continue", "content-length": length },
    });
    request.on("continue", () => {
      continued = true;
      request.end("x".repeat(length));
    });
    request.on("response", (response) => {
      resolve({ continued, status: response.statusCode ?? 0 });
      request.destroy();
    });
    request.on("error", reject);
    request.flushHeaders();
  });
}
