import { deepEqual, equal, match } from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { DrainView } from "#app/node/drain.ts";
import type { World } from "#door/command.ts";
import { runLine } from "#cli/line.ts";

const view = (state: DrainView["state"], more: Partial<DrainView> = {}): DrainView => ({
  state,
  running: 0,
  shards: 0,
  forMs: 1_500,
  leaves: false,
  ...more,
});

/** A node that answers with one view after the other, a number being a refusal, and is gone after the last. */
async function scene(answers: readonly (DrainView | number)[]) {
  const asked: string[] = [];
  const left = [...answers];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const answer = left.shift();
    if (answer === undefined) return void request.socket.destroy();
    const isView = typeof answer === "object";
    response.writeHead(isView ? 200 : answer, { "content-type": "application/json" });
    response.end(JSON.stringify(isView ? answer : { status: answer, title: "the node is leaving" }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const run = async (...args: readonly string[]) => {
    const [out, notes]: [string[], string[]] = [[], []];
    const world: World = {
      env: {},
      isTerminal: false,
      out: (line) => out.push(line),
      note: (line) => notes.push(line),
      progress: () => {},
      http: () => Promise.reject(new Error("not asked over HTTP")),
    };
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const code = await runLine(["drain", "--server", url, ...args], world);
    return { code, out, notes };
  };
  return { asked, run, [Symbol.dispose]: () => void server.close() };
}

test("drain waits until the node has left", async () => {
  using node = await scene([view("draining", { running: 2, leaves: true }), view("leaving", { leaves: true })]);
  const { code, out } = await node.run("--within", "30m");
  deepEqual([code, out], [0, ["draining: 2 running, 0 shards here, for 1.5s", "left: the node has ended"]]);
  deepEqual(node.asked.slice(0, 2), ["POST /v1/node/drain?leave=true&within=30m", "GET /v1/node/drain"]);
});

test("drain takes no node for gone that never said it would leave, or that still answers", async () => {
  using silent = await scene([]);
  const unheard = await silent.run();
  deepEqual([unheard.code, unheard.out], [1, []]);
  match(unheard.notes[0] ?? "", /^drain node: unavailable .*no node answers there/);
  using busy = await scene([view("draining", { running: 2, leaves: true }), 503]);
  const refused = await busy.run();
  deepEqual([refused.code, refused.out], [1, ["draining: 2 running, 0 shards here, for 1.5s"]]);
  match(refused.notes[0] ?? "", /^drain node: unavailable \(status=503/);
  using staying = await scene([view("draining", { running: 1 })]);
  const lost = await staying.run("--stay");
  equal(lost.code, 1);
});

test("drain --stay waits until nothing runs", async () => {
  using node = await scene([view("draining", { running: 1 }), view("draining"), view("drained")]);
  const { code, out } = await node.run("--stay", "--json");
  equal(code, 0);
  deepEqual(
    out.map((line) => (JSON.parse(line) as DrainView).state),
    ["draining", "drained"],
  );
  equal(node.asked[0], "POST /v1/node/drain?leave=false");
});

test("drain says when another caller has undone it, and what a node refuses", async () => {
  using undone = await scene([view("draining", { leaves: true }), view("serving", { leaves: true })]);
  const { code, notes } = await undone.run();
  deepEqual([code, notes], [1, ["drain: somebody has resumed it"]]);
  using refusing = await scene([409]);
  const refused = await refusing.run("--resume");
  equal(refused.code, 1);
  match(refused.notes[0] ?? "", /^drain node: stale \(status=409 why=the node is leaving\)/);
});

test("drain --resume takes nothing else", async () => {
  using node = await scene([]);
  equal((await node.run("--resume", "--stay")).code, 2);
  deepEqual(node.asked, []);
});
