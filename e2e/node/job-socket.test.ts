/** Live job status over a WebSocket of a real node, and the addresses of version 0.1. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { JobSocketSends } from "#api/job-socket.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

describe("a node's WebSocket of a job", { timeout: 60_000 }, () => {
  let folder: string;
  let node: Running;
  let host: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-socket-"));
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      journal: { kind: "memory" },
      cluster: { shards: 1 },
      node: { stopWithin: "100ms" },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    host = `127.0.0.1:${node.edgePorts[0]}`;
  });
  after(async () => {
    await node.stop();
    clearAway(folder);
  });

  const submit = async (...command: readonly string[]): Promise<string> =>
    (await node.client.submit(orderFromCommand(command, { tenant: "default" }))).jobId;
  const owner = (): Record<string, string> => ({ authorization: `Bearer ${node.owner}` });
  const refusal = async (path: string, headers: Record<string, string>): Promise<number | undefined> => {
    const socket = new WebSocket(`ws://${host}${path}`, { headers });
    socket.on("error", () => {});
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode?: number }];
    return response.statusCode;
  };

  test("sends the job until it has ended, and again when asked", async () => {
    const job = await submit("sleep", "300");
    const socket = new WebSocket(`ws://${host}/v1/jobs/${job}/socket`, { headers: owner() });
    const got: JobSocketSends[] = [];
    socket.on("message", (data: Buffer) => got.push(JobSocketSends.parse(JSON.parse(data.toString()))));
    const phase = (): string | undefined => got.findLast((one) => one.kind === "job")?.job.phase;
    await until("it runs", () => phase() === "RUNNING");
    const before = got.length;
    socket.send(JSON.stringify({ kind: "refresh" }));
    await until("it is sent again", () => got.length > before);
    const metrics = async (): Promise<string> => (await fetch(`http://${host}/metrics`, { headers: owner() })).text();
    match(await metrics(), /millrace_http_requests_total\{endpoint="GET \/v1\/jobs\/\{job\}\/socket",status="101"\} 1/);
    await node.client.cancel(job, "enough");
    await once(socket, "close");
    deepEqual([phase(), got.at(-1)?.kind], ["CANCELLED", "end"]);
  });

  test("is closed for a message that it does not know", async () => {
    const job = await submit("sleep", "300");
    const socket = new WebSocket(`ws://${host}/v1/jobs/${job}/socket`, { headers: owner() });
    await once(socket, "open");
    socket.send(JSON.stringify({ kind: "cancel" }));
    const [code] = (await once(socket, "close")) as [number];
    equal(code, 1008);
    await node.client.cancel(job, "enough");
  });

  test("is refused like any other call: to strangers, pages of others, and for jobs that are not there", async () => {
    const job = await submit("true");
    const path = `/v1/jobs/${job}/socket`;
    equal(await refusal(path, {}), 403, "anonymous callers may not read work");
    equal(await refusal(path, { authorization: "Bearer wrong-wrong-wrong-wrong-wrong-wrong" }), 401);
    equal(await refusal(path, { ...owner(), origin: "http://evil.example" }), 403);
    equal(await refusal(path, { ...owner(), "sec-fetch-site": "same-site" }), 403);
    equal(await refusal("/v1/jobs/j0-999/socket", owner()), 404);
    equal(await refusal("/v1/jobs", owner()), 404, "not a WebSocket's address");
    const plain = await fetch(`http://${host}${path}`, { headers: owner() });
    deepEqual([plain.status, plain.headers.get("upgrade")], [426, "websocket"]);
  });

  test("others that ask for an upgrade are answered as if they had not", async () => {
    const socket = connect(node.edgePorts[0] ?? 0, "127.0.0.1");
    let said = "";
    socket.on("data", (part: Buffer) => (said += part.toString()));
    const lines = ["GET /livez HTTP/1.1", "host: localhost", "connection: upgrade, close", "upgrade: h2c", "", ""];
    socket.write(lines.join("\r\n"));
    await once(socket, "close");
    match(said, /^HTTP\/1.1 200 OK[^]*alive/);
  });

  test("old addresses answer 308, and clients that follow it get the answer", async () => {
    const drain = `http://${host}/api/node/drain`;
    const moved = await fetch(drain, { headers: owner(), redirect: "manual" });
    deepEqual([moved.status, moved.headers.get("location")], [308, "/v1/node/drain"]);
    const followed = await fetch(drain, { headers: owner() });
    ok(followed.redirected);
    equal(((await followed.json()) as { readonly state: string }).state, "serving");
    const link = await fetch(`http://${host}/api/login`, { method: "POST", headers: owner() });
    equal(link.status, 201);
  });
});
