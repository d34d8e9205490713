import { deepEqual, equal, match, ok, rejects, throws } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { workerDefaults } from "#worker/worker-options.ts";
import { limitsOf } from "#app/compose/node.ts";
import { hidePassword, readConfig, serversOf, shardsOf, withoutSecrets } from "./config.ts";
import { edgeAddressDefault } from "./edge-config.ts";
import { check, problem } from "#app/testing/config.ts";

describe("the configuration", () => {
  test("needs none: everything has a default, and the default stays on this machine", () => {
    const { cluster, journal, blobs, worker, node, edge } = check("");
    deepEqual([cluster.ownerLease, journal.kind, blobs.kind], [6_000, "sqlite", "disk"]);
    ok(worker.slots >= 1);
    equal(edge.listen, undefined);
    equal(edgeAddressDefault, "127.0.0.1:8980");
    ok(node.listen.every((address) => address === "unix" || address.startsWith("tcp:127.0.0.1:")));
  });

  test("a journal for many nodes has more shards than a worker polls, unless the number is given", () => {
    const shared = "journal: { kind: postgres, url: postgres://localhost/mill }\n";
    deepEqual([shardsOf(check("")), shardsOf(check(shared))], [8, 64]);
    deepEqual([shardsOf(check(`${shared}cluster: { shards: 3 }`)), shardsOf(check("cluster: { shards: 3 }"))], [3, 3]);
    ok(shardsOf(check(shared)) > workerDefaults.heldShardsMax, "ADR 0022: the emptiest worker hears first");
  });

  test("a journal lies in one database or in several, and never in a list of one", () => {
    const two = check(
      "journal: { kind: postgres, servers: [{ url: 'postgres://a/m' }, { url: 'postgres://b/m', schema: s }] }",
    );
    ok(two.journal.kind === "postgres");
    deepEqual(serversOf(two.journal), [
      { url: "postgres://a/m", schema: "millrace" },
      { url: "postgres://b/m", schema: "s" },
    ]);
    equal(shardsOf(two), 64);
    const wrong = /write url for one server, or servers for several/;
    match(problem("journal: { kind: postgres }"), wrong);
    const pair = "servers: [{ url: 'postgres://a/m' }, { url: 'postgres://b/m' }]";
    match(problem(`journal: { kind: postgres, url: 'postgres://a/m', ${pair} }`), wrong);
    match(problem("journal: { kind: postgres, servers: [{ url: 'postgres://a/m' }] }"), /for one server, write url/);
    match(problem("journal: { kind: postgres, servers: [{ url: 'postgres://a/m', shcema: s }] }"), /shcema/);
  });

  test("the cluster's limit is divided among its shards", () => {
    equal(limitsOf(check("cluster: { tasksMax: 100 }"), 8).tasksMax, 13);
    deepEqual(limitsOf(check(""), 8), defaultLimits);
  });

  test("reads durations and sizes with units", () => {
    const config = check("cluster: { ownerLease: 1.5s }\nblobs: { kind: memory, sizeMax: 2GiB }\n");
    equal(config.cluster.ownerLease, 1_500);
    deepEqual(config.blobs, { kind: "memory", sizeMax: 2 * 1024 ** 3 });
  });

  test("explains how a duration and a size are written, for any wrong value", () => {
    match(problem("cluster: { ownerLease: 5 }"), /^cluster\.ownerLease \(line 1\): write a number and a unit, such as/);
    match(problem("blobs: { kind: memory, sizeMax: [] }"), /blobs\.sizeMax \(line 1\): write a number and a unit/);
  });

  test("refuses a typo, with its path, its line and what was meant", () => {
    equal(
      problem("cluster:\n  name: x\n  shrads: 4\n"),
      "cluster.shrads (line 3): there is no such setting (did you mean shards?)",
    );
    equal(problem("nod: {}"), "nod (line 1): there is no such setting (did you mean node?)");
    match(problem("worker: { frobnicate: 1 }"), /known settings are enabled, slots, planners, labels/);
    match(
      problem("journal: { kind: postgres, url: 'postgres://h/d', shcema: x }"),
      /journal\.shcema \(line 1\).*did you mean schema/,
    );
  });

  test("names the line of a wrong value, and of invalid YAML", () => {
    match(problem("cluster:\n  ownerLease: 30\n"), /^cluster\.ownerLease \(line 2\): /);
    match(problem("cluster:\n  ownerLease: 30 s\n"), /^cluster\.ownerLease \(line 2\): write a number and a unit/);
    match(problem("journal:\n  kind: oracle\n"), /^journal\.kind \(line 2\): /);
    throws(
      () => check("a: [1,\nb: 2"),
      (e) => isFault(e, "invalid") && Number(e.facts["line"]) >= 1,
    );
  });

  test("keeps history forever, or as long as configured", () => {
    deepEqual(check("").history, { results: 7 * 86_400_000 });
    equal(check("history: { keep: 90d }").history.keep, 90 * 86_400_000);
    for (const keep of ["0s", "59s"])
      equal(problem(`history: { keep: ${keep} }`), "history.keep (line 1): keep at least one minute: 1m");
    match(problem("history: { keep: soon }"), /^history\.keep \(line 1\): write a number and a unit/);
    match(problem("history: { kept: 1d }"), /there is no such setting \(known settings are keep, results\)/);
  });

  test("may be JSON", () => {
    equal(check('{ "cluster": { "shards": 3 } }').cluster.shards, 3);
  });

  test("refuses to listen where others can reach it without authentication", () => {
    for (const address of ["tcp:0.0.0.0:7433", "tcp:192.168.1.7:7433", "tcp:[::]:1", "tcp:example.org:80"])
      match(problem(`node: { listen: ["${address}"] }`), /node\.listen\.0 \(line 1\): without authentication/, address);
    match(problem("node: { listen: ['7433'] }"), /write unix:\/path or tcp:host:port/);
    deepEqual(check("node: { listen: [unix, 'tcp:127.0.0.1:7433'] }").node.listen, ["unix", "tcp:127.0.0.1:7433"]);
  });

  test("never shows a password", () => {
    const config = check("journal: { kind: postgres, url: 'postgres://me:s3cret@db:5432/mill?sslpassword=s3cret' }");
    const shown = JSON.stringify(withoutSecrets(config));
    ok(!shown.includes("s3cret"), shown);
    match(shown, /me:\*\*\*@db:5432/);
    const servers = "{ url: 'postgres://me:s3cret@db1/mill' }, { url: 'postgres://me:s3cret@db2/mill' }";
    const several = JSON.stringify(withoutSecrets(check(`journal: { kind: postgres, servers: [${servers}] }`)));
    ok(!several.includes("s3cret") && several.includes("me:***@db2"), several);
    equal(hidePassword("not a url s3cret"), "postgres://***");
    ok(!problem("journal: { kind: postgres, url: 'mysql://me:s3cret@db/x' }").includes("s3cret"));
  });

  test("comes from a file, or says which file is missing", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-config-"));
    try {
      const path = join(folder, "c.yaml");
      await writeFile(path, "worker: { slots: 7 }\n");
      equal((await readConfig({ file: path })).worker.slots, 7);
      await rejects(readConfig({ file: join(folder, "none.yaml") }), (e) => isFault(e, "not-found"));
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
