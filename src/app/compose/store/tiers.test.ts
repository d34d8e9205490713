/** Two nodes' stores over one tier of each kind: each reads the other's blobs and finds its names. */
import { deepEqual, doesNotMatch, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { must } from "#base/assert.ts";
import { Random } from "#base/random.ts";
import { bytes, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { LittleS3, littleCredentials } from "#blobs/tiers/testing/little-s3.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { startEdge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { ComposedStore } from "./store.ts";
import { composeTiers } from "./tiers.ts";
import { Config, withoutSecrets } from "#app/config/config.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { addBuildServices } from "#app/testing/build-services.ts";
import { TierConfig } from "#app/config/tier-config.ts";

const MiB = 1024 * 1024;

function local(): ComposedStore {
  const options = { clock, sizeBytesMax: 8 * MiB };
  const store = createMemoryStore(options);
  const blobs = createMemoryBlobs(options);
  return { blobs, pins: () => blobs, store, index: createMemoryIndex(), close: () => store.close() };
}

const env = {
  AWS_ACCESS_KEY_ID: littleCredentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: littleCredentials.secretAccessKey,
};

const opened = (config: unknown): Promise<ComposedStore> =>
  composeTiers(local(), TierConfig.parse(config), { clock, random: new Random(1), env, log: () => {} });

/** What one node was told is durable is read from the other, also as a blob. */
async function sharedStreams(one: ComposedStore, two: ComposedStore, tenant: string): Promise<void> {
  const key = { tenant, task: randomUUID(), token: 3, name: "output" };
  ok(one.areStreamsShared);
  const [here, there] = [must(one.streams, "streams"), must(two.streams, "streams")];
  await here.append(key, 0, bytes("one "));
  await here.append(key, 4, bytes("two"));
  equal((await there.state(key))?.sizeBytes, 7);
  const reading = text(there.read(key, 2, new AbortController().signal));
  await there.append(key, 4, bytes("two three"));
  const digest = await there.seal(key);
  equal(await reading, "e two three");
  equal(await text(one.blobs.read(digest)), "one two three");
  await rejects(here.append({ ...key, token: 2 }, 0, bytes("old")), (e) => isFault(e, "stale"));
}

async function twoNodes(config: unknown, tenants: readonly [string, string]): Promise<void> {
  const [one, two] = [await opened(config), await opened(config)];
  const [mine, foreign] = tenants;
  try {
    const digest = await put(one.store.forTenant(mine).blobs, "grain");
    deepEqual(await two.store.forTenant(mine).blobs.missing([digest]), []);
    equal(await text(two.store.forTenant(mine).blobs.read(digest)), "grain");
    const own = await put(one.blobs, "archive");
    equal(await text(two.blobs.read(own)), "archive");
    const other = two.store.forTenant(foreign).blobs;
    deepEqual(await other.missing([digest]), [digest], "B5");
    await sharedStreams(one, two, mine);
    await rejects(text(other.read(digest)), (e) => isFault(e, "not-found"));
  } finally {
    await one.close();
    await two.close();
  }
}

test("a bucket: blobs and names", async () => {
  await using s3 = await LittleS3.start();
  const config = { kind: "s3", endpoint: s3.endpoint, region: "here", bucket: "mill" };
  await twoNodes(config, ["a", "b"]);
  const [one, two] = [await opened(config), await opened(config)];
  const key = { tenant: "a", space: "ac", name: "x" };
  const entry = { digest: digestOf(bytes("x")), principal: "ada", atMs: 1 };
  await one.index.put(key, entry);
  equal((await two.index.get(key))?.digest, entry.digest);
  await one.close();
  await two.close();
});

test("a missing or foreign bucket is reported at the start", async () => {
  await using s3 = await LittleS3.start();
  const config = { kind: "s3", endpoint: s3.endpoint, region: "here", bucket: "other" };
  await rejects(opened(config), (e) => isFault(e, "not-found") && e.facts["code"] === "NoSuchBucket");
  const folder = await mkdtemp(join(tmpdir(), "millrace-tiers-"));
  await writeFile(join(folder, "keys"), "mill\nwrong\n");
  const wrong = { ...config, bucket: "mill", credentials: join(folder, "keys") };
  await rejects(opened(wrong), (e) => isFault(e, "internal") && e.facts["code"] === "SignatureDoesNotMatch");
  await rm(folder, { recursive: true });
});

test("a shared folder", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-tiers-"));
  await twoNodes({ kind: "directory", directory: folder }, ["a", "b"]);
  const noNames = { kind: "directory", directory: folder, names: { kind: "tier" } };
  await rejects(opened(noNames), (e) => isFault(e, "invalid") && /postgres/.test(e.message));
  await rm(folder, { recursive: true });
});

test("B5: another Millrace, with a token for each tenant; without tokens it serves one tenant", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-tiers-"));
  await mkdir(join(folder, "tokens"));
  const secretOf = (name: string): string => `${name}-token-0123456789-0123456789`;
  for (const name of ["a", "b"]) await writeFile(join(folder, "tokens", name), `${secretOf(name)}\n`);
  await writeFile(join(folder, "own"), `${secretOf("own")}\n`);
  const tokens = ["a", "b", "own"].map((name) => {
    const roles = [name === "own" ? "action-cache-writer" : "cache-writer"];
    return { name, tenant: name, roles, sha256: tokenSha256(secretOf(name)) };
  });
  const store = createMemoryStore({ clock, sizeBytesMax: 8 * MiB });
  const edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({ tokens }),
    services: (server) => addBuildServices(server, { store, clock, folder }),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 100 },
  });
  context.after(async () => {
    await edge.close();
    await rm(folder, { recursive: true });
  });
  const reapi = { kind: "reapi", address: `grpc://127.0.0.1:${edge.ports[0]}`, token: join(folder, "own") };
  await twoNodes({ ...reapi, tokens: join(folder, "tokens") }, ["a", "b"]);
  const alone = await opened({ ...reapi, tenant: "own" });
  const digest = await put(alone.store.forTenant("own").blobs, "alone");
  equal(await text(alone.store.forTenant("own").blobs.read(digest)), "alone");
  await rejects(put(alone.store.forTenant("a").blobs, "x"), (e) => {
    match(String(e), /alone/);
    return isFault(e, "invalid");
  });
  await alone.close();
});

test("short cuts are used, and calls to the tier are counted", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-tiers-"));
  const cache = createServer((_request, response) => response.end("grain"));
  context.after(async () => {
    cache.closeAllConnections();
    cache.close();
    await rm(folder, { recursive: true });
  });
  await new Promise<void>((listening) => cache.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(cache.address() as AddressInfo).port}`;
  const config = { kind: "directory", directory: folder, shortCuts: [{ url }] };
  const [one, two] = [await opened(config), await opened(config)];
  const registry = new MetricsRegistry();
  two.observe?.(registry);
  const digest = await put(one.store.forTenant("a").blobs, "grain");
  for (let i = 0; i < 2; i += 1) equal(await text(two.store.forTenant("a").blobs.read(digest)), "grain");
  const counted = registry.text();
  match(counted, /millrace_tier_reads_total\{from="far"\} 1\n/);
  match(counted, /millrace_tier_reads_total\{from="near"\} 1\n/);
  match(counted, /millrace_tier_calls_total\{tier="directory",call="missing",outcome="ok"\} 1\n/);
  doesNotMatch(counted, /call="read"/, "the bytes came by the short cut");
  await one.close();
  await two.close();
});

test("the password of the names' server is never shown", () => {
  const names = { kind: "postgres", url: "postgres://mill:secret@db/names" };
  const authoritative = { kind: "directory", directory: "/shared", names };
  const shown = JSON.stringify(withoutSecrets(Config.parse({ blobs: { kind: "disk", authoritative } })));
  match(shown, /postgres:\/\/mill:\*\*\*@db\/names/);
  doesNotMatch(shown, /secret/);
});
