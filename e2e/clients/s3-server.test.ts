/** The S3 tier on a real S3-compatible server: OpenStack Swift. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { hash, randomBytes } from "node:crypto";
import { spawn, type ChildProcess } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";
import { startSwift } from "#testing/swift.ts";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { bytes, exerciseBlobs, put } from "#blobs/testing/exercise.ts";
import { exerciseIndex } from "#blobs/testing/index.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createS3Client, type S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { checkConditions, s3Index } from "#blobs/tiers/s3/s3-index.ts";
import { s3Blobs } from "#blobs/tiers/s3/s3.ts";
import { signedHeaders } from "#blobs/tiers/s3/sigv4.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { onPath } from "./processes.ts";

const swift = await startSwift();
if (swift.skip) console.error(`the S3 tier is NOT tried on a real server: ${swift.skip}`);
after(() => swift.stop());

const clientOf = (secretAccessKey?: string): S3Client => {
  const { endpoint, region, credentials } = swift.server();
  const keys = { ...credentials, ...(secretAccessKey !== undefined && { secretAccessKey }) };
  return createS3Client({ clock, random: new Random(1), endpoint, region, bucket: "mill", credentials: keys });
};

if (!swift.skip) {
  const { endpoint, region, credentials } = swift.server();
  const url = new URL("/mill", endpoint);
  const request = { method: "PUT", url, headers: {}, payloadSha256: hash("sha256", "", "hex") };
  const { host: _host, ...headers } = signedHeaders(request, { region, credentials, nowMs: Date.now() });
  const made = await fetch(url, { method: "PUT", headers });
  equal(made.status, 200, await made.text());

  let tries = 0;
  exerciseBlobs("the S3 tier on Swift", async () => {
    const client = clientOf();
    const prefix = `suite ${(tries += 1)}/`;
    return { blobs: s3Blobs({ clock, client, prefix }), dispose: async () => client[Symbol.dispose]() };
  });
}

test("Swift: a large blob is written in parts and read back whole", { skip: swift.skip }, async () => {
  using client = clientOf();
  const blobs = s3Blobs({ clock, client, prefix: "large+/", partBytes: 5 * 1024 * 1024, knownForMs: 0 });
  const large = randomBytes(12_000_000);
  const digest = digestOf(large);
  await blobs.write(digest, large);
  const got: Uint8Array[] = [];
  for await (const part of blobs.read(digest)) got.push(Uint8Array.from(part));
  ok(Buffer.concat(got).equals(large));
  deepEqual(await blobs.missing([digest]), []);
  const other = digestOf(bytes("something else"));
  await rejects(blobs.write(other, large), (e) => isFault(e, "invalid"));
});

test("Swift: objects are listed page by page, refreshed, and removed", { skip: swift.skip }, async () => {
  using client = clientOf();
  const keys = ["a b", "a+b", "ä", "plain"].map((name) => `listed/${name}`);
  for (const key of keys) await client.put(key, bytes(key));
  const found: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await client.list("listed/", after, 2);
    found.push(...page.keys);
    if (page.isLast) break;
    after = page.keys.at(-1);
  }
  deepEqual(found.toSorted(), keys.toSorted());
  equal(await client.refresh("listed/a+b"), true);
  equal(await client.refresh("listed/none"), false);
  await client.remove("listed/plain");
  equal(await client.head("listed/plain"), undefined);
});

test("Swift: a wrong secret is refused", { skip: swift.skip }, async () => {
  using client = clientOf("wrong");
  const blobs = s3Blobs({ clock, client, prefix: "" });
  await rejects(put(blobs, "x"), (e) => isFault(e, "internal") && e.facts["code"] === "SignatureDoesNotMatch");
});

test("Swift does not honour conditional writes, which is detected", { skip: swift.skip }, async () => {
  using client = clientOf();
  await rejects(checkConditions(client, "c/"), (e) => isFault(e, "invalid") && /PostgreSQL/.test(e.message));
});

describe("names in a bucket", { skip: onPath("moto_server") ? false : "needs moto: pip install moto[server]" }, () => {
  // An imitation by others: of all servers that can be installed here, the one that honours conditions.
  let port = 0;
  let server: ChildProcess | undefined;
  before(async () => {
    port = await freePort();
    server = spawn("moto_server", ["-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
    const isThere = () =>
      fetch(`http://127.0.0.1:${port}/mill`, { method: "PUT" }).then(
        ({ ok: is }) => is,
        () => false,
      );
    await until("moto answers", isThere, { limitMs: 60_000, everyMs: 200 });
  });
  after(() => server?.kill("SIGKILL"));

  let tries = 0;
  exerciseIndex("the index on moto", async () => {
    const credentials = { accessKeyId: "any", secretAccessKey: "any" };
    const endpoint = `http://127.0.0.1:${port}`;
    const options = { clock, random: new Random(1), endpoint, region: "us-east-1", bucket: "mill", credentials };
    const client = createS3Client(options);
    await checkConditions(client, "");
    const open = () => s3Index({ client, prefix: `${tries}/` });
    tries += 1;
    return { index: open(), dispose: async () => client[Symbol.dispose]() };
  });
});
