/** The output of an action, read while it runs: from the node that runs it, from another, and from the result. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { globSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { bytes as bytesOf } from "#blobs/testing/exercise.ts";
import { openDiskStore } from "#blobs/disk/open.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { Bench, Lab, metadataOf, responseOf, shAction } from "./execution-lab.ts";
import { liveCalls, liveSource } from "#app/peers/live-streams.ts";
import { systemClock as clock } from "#door/system-clock.ts";

const isLinux = process.platform === "linux";
const salted = (line: string): string => `${line} # ${randomUUID()}`;

/** In the folder of the running action; the one prepared for the next is not affected. */
function letGo(lab: Lab): void {
  for (const where of globSync(`${lab.root}/actions/attempts/*/root`)) writeFileSync(join(where, "go"), "");
}

class Reader {
  text = "";
  isEnded = false;
  readonly end: Promise<void>;
  constructor(bench: Bench, resourceName: string, readOffset = 0, readLimit = 0) {
    this.end = this.#read(bench, { resourceName, readOffset, readLimit });
  }
  async #read(bench: Bench, request: { resourceName: string; readOffset: number; readLimit: number }): Promise<void> {
    for await (const { data } of bench.grpc.serverStream(ByteStream.methods.read, request))
      this.text += Buffer.from(data).toString();
    this.isEnded = true;
  }
}

describe("what an action prints", { skip: !isLinux && "needs linux: the sandbox", timeout: 120_000 }, () => {
  test("can be read while it runs, from any offset, and continues from the result when it has ended", async () => {
    await using lab = await Lab.open({ worker: { slots: 2, printedMax: "64KiB" } });
    const bench = new Bench(lab.client(lab.owner));
    const line = "echo one; echo wrong >&2; while ! test -e go; do sleep 0.05; done; echo two";
    const stream = bench.stream(await bench.sh(salted(line)));
    let names = { stdout: "", stderr: "" };
    const rest = (async () => {
      let last;
      for await (const operation of stream) {
        const { stdoutStreamName: stdout, stderrStreamName: stderr } = metadataOf((last = operation));
        if (stdout !== "") names = { stdout, stderr };
      }
      return last;
    })();
    await until("it has names", () => names.stdout !== "");
    match(names.stdout, /^streams\/j[^/]+\/\d+\/stdout$/);
    const [out, err, later] = [
      new Reader(bench, names.stdout),
      new Reader(bench, names.stderr),
      new Reader(bench, names.stdout, 2),
    ];
    await until("all have heard", () => out.text === "one\n" && err.text === "wrong\n" && later.text === "e\n");
    ok(!out.isEnded && !err.isEnded, "more may come");
    const cut = new Reader(bench, names.stdout, 1, 2);
    await cut.end;
    equal(cut.text, "ne");
    letGo(lab);
    await Promise.all([out.end, err.end, later.end]);
    deepEqual([out.text, err.text, later.text], ["one\ntwo\n", "wrong\n", "e\ntwo\n"]);
    const operation = await rest;
    ok(operation);
    equal(Buffer.from(responseOf(operation).result?.stdoutRaw ?? "").toString(), "one\ntwo\n");
    const afterwards = new Reader(bench, names.stdout, 4);
    await afterwards.end;
    equal(afterwards.text, "two\n");
    const old = new Reader(bench, names.stdout.replace(/\/\d+\/stdout/, "/99/stdout"));
    await old.end;
    equal(old.text, "", "of a claim that there was not, there is nothing");
  });

  test("of an action of a build can be read, too, whether it succeeds or fails", async () => {
    await using lab = await Lab.open({ worker: { slots: 2 } });
    const bench = new Bench(lab.client(lab.owner));
    const wait = "while ! test -e go; do sleep 0.05; done";
    const actions = [
      shAction("mill", salted(`echo one; ${wait}; echo two`)),
      shAction("oven", salted(`echo hot; ${wait}; echo burnt; exit 3`)),
    ];
    const value = { name: "bread", instanceName: "", actions, deadlineMs: 0 };
    const { submitBuild, getBuild, watchBuild } = Builds.methods;
    const { buildId } = await bench.grpc.unary(submitBuild, {
      requestId: "",
      priority: 0,
      what: { kind: "build", value },
    });
    const names = new Map<string, string>();
    const watched = (async () => {
      for await (const { changed } of bench.grpc.serverStream(watchBuild, { buildId }))
        for (const { key, stdoutStreamName: name } of changed) if (name !== "") names.set(key, name);
    })();
    await until("both have names", () => names.size === 2);
    const told = await bench.grpc.unary(getBuild, { buildId, withActions: true });
    deepEqual(new Map(told.actions.map(({ key, stdoutStreamName }) => [key, stdoutStreamName])), names);
    const [mill, oven] = [new Reader(bench, names.get("mill") ?? ""), new Reader(bench, names.get("oven") ?? "")];
    await until("both printed", () => mill.text === "one\n" && oven.text === "hot\n");
    letGo(lab);
    await Promise.all([mill.end, oven.end, watched]);
    deepEqual([mill.text, oven.text], ["one\ntwo\n", "hot\nburnt\n"]);
    const after = new Reader(bench, names.get("mill") ?? "");
    await after.end;
    equal(after.text, "one\ntwo\n");
    const ended = await bench.grpc.unary(getBuild, { buildId, withActions: true });
    deepEqual(new Set(ended.actions.map(({ stdoutStreamName }) => stdoutStreamName)), new Set([""]));
  });

  test("is capped while it is read, and nothing of it stays when the result is known", async () => {
    await using lab = await Lab.open({ worker: { slots: 2, printedMax: "64KiB" } });
    const bench = new Bench(lab.client(lab.owner));
    const line = "yes x | head -c 3000000; while ! test -e go; do sleep 0.05; done; echo last";
    const stream = bench.stream(await bench.sh(salted(line)));
    let name = "";
    const ended = (async () => {
      for await (const operation of stream) name ||= metadataOf(operation).stdoutStreamName;
    })();
    await until("it has a name", () => name !== "");
    const reader = new Reader(bench, name);
    await until("its beginning is there", () => reader.text.length === 48 * 1024);
    letGo(lab);
    await Promise.all([reader.end, ended]);
    match(reader.text, /^x\n[^]*x\n\n\.\.\. \d+ bytes left out \.\.\.\n[^]*x\nlast\n$/);
    const streams = (): number => globSync(`${lab.root}/data/blobs/streams/*/*/*`).length;
    await until("its streams are gone", () => streams() === 0);
  });

  test("of other tenants, or of unknown actions, is not found", async () => {
    await using lab = await Lab.open();
    const bench = new Bench(lab.client(lab.owner));
    await rejects(
      new Reader(bench, "streams/j0-99/1/stdout").end,
      (error) => error instanceof GrpcError && error.code === grpcCode.notFound,
    );
    await rejects(
      new Reader(bench, "streams/else/1/stdout").end,
      (error) => error instanceof GrpcError && error.code === grpcCode.invalidArgument,
    );
  });
});

test("of an action on another node is pulled from there as it arrives", async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-live-"));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => clearAway(folder));
  const store = await openDiskStore(join(folder, "blobs"), { clock, sizeBytesMax: 1e8 });
  undo.defer(() => store.close());
  const there = createTcpTransport({ clock, listenOn: [`unix:${join(folder, "there")}`] });
  undo.defer(() => there.close());
  const here = createTcpTransport({ clock, listenOn: [`unix:${join(folder, "here")}`] });
  undo.defer(() => here.close());
  const service = {} as ShardService; // not called here
  const { address } = await there.listen(service, { routed: service, calls: liveCalls(store.streams) });
  const row = { node: "there", address, alive: true, seenAgoMs: 0, features: 1, state: "up", facts: {} } as const;
  const source = liveSource({ name: "here", streams: undefined, areShared: false }, { keeper: { nodes: [row] } }, here);
  const key = { tenant: "mill", task: "t0-1", token: 3, name: "stdout" };
  const options = (waitMs: number) => ({ waitMs, signal: new AbortController().signal });
  const text = async (offset: number, waitMs = 10_000): Promise<string | undefined> => {
    const got = await source.pull("there", key, offset, options(waitMs));
    return got && Buffer.from(got).toString();
  };
  const first = text(0);
  await store.streams.append(key, 0, bytesOf("grain "));
  equal(await first, "grain ");
  const second = text(6);
  await store.streams.append(key, 6, bytesOf("flour"));
  equal(await second, "flour");
  equal(await text(11, 10), "", "nothing in time");
  equal(await source.pull("nowhere", key, 0, options(10)), undefined);
});
