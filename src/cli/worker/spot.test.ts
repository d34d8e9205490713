import { deepEqual, equal, match, rejects, throws } from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { readAws, readGcp, spotNotice, spotStopMs, type SpotCloud } from "./spot.ts";

test("what the services of AWS and GCP answer", () => {
  const time = "2026-11-20T01:02:03Z";
  equal(readAws({ status: 404, text: "" }), undefined);
  deepEqual(readAws({ status: 200, text: JSON.stringify({ action: "terminate", time }) }), {
    why: "a spot notice: terminate",
    atMs: Date.parse(time),
  });
  deepEqual(readAws({ status: 200, text: '{"action":"stop"}' }), { why: "a spot notice: stop" });
  for (const wrong of [
    { status: 401, text: "" },
    { status: 200, text: "<html>" },
  ])
    throws(() => readAws(wrong));
  equal(readGcp({ status: 200, text: "FALSE" }), undefined);
  deepEqual(readGcp({ status: 200, text: "TRUE\n" }), { why: "a spot notice: preempted" });
  throws(() => readGcp({ status: 404, text: "TRUE" }));
});

test("tasks may run on as long as always, unless the machine goes before", () => {
  equal(spotStopMs({ why: "" }, 20_000, 0), 20_000);
  equal(spotStopMs({ why: "", atMs: 120_000 }, 20_000, 0), 20_000);
  equal(spotStopMs({ why: "", atMs: 25_000 }, 20_000, 0), 15_000);
  equal(spotStopMs({ why: "", atMs: 5_000 }, 20_000, 0), 0);
});

/** A metadata service that answers nothing for two looks, then that the machine stays, then the notice. */
async function heard(cloud: SpotCloud): Promise<readonly string[]> {
  let looks = 0;
  const server = createServer(({ method = "", url = "", headers }, response) => {
    if (method === "PUT" && url === "/latest/api/token" && headers["x-aws-ec2-metadata-token-ttl-seconds"])
      return void response.end("the-token");
    const isAws =
      url === "/latest/meta-data/spot/instance-action" && headers["x-aws-ec2-metadata-token"] === "the-token";
    const isGcp = url === "/computeMetadata/v1/instance/preempted" && headers["metadata-flavor"] === "Google";
    looks += 1;
    if (!(cloud === "aws" ? isAws : isGcp) || looks <= 2) return void response.writeHead(500).end();
    if (looks === 3) return void response.writeHead(cloud === "aws" ? 404 : 200).end("FALSE");
    response.end(cloud === "aws" ? '{"action":"terminate","time":"2026-11-20T01:02:03Z"}' : "TRUE");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const lines: string[] = [];
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clock = { sleep: () => Promise.resolve() };
    const { why } = await spotNotice(
      { cloud, url, clock, log: (line) => lines.push(line) },
      new AbortController().signal,
    );
    return [...lines, why];
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a service is asked until it gives notice; that it does not answer is said once", async () => {
  const [aws, gcp] = [await heard("aws"), await heard("gcp")];
  equal(aws.length, 2);
  match(aws[0] ?? "", /does not answer: status 500/);
  deepEqual([aws[1], gcp[1]], ["a spot notice: terminate", "a spot notice: preempted"]);
  equal(gcp.length, 2);
});

test("asking ends with the signal", async () => {
  const stop = new AbortController();
  const clock = { sleep: (_ms: number, signal?: AbortSignal) => Promise.reject(signal?.reason as Error) };
  stop.abort(new Error("enough"));
  const asking = spotNotice({ cloud: "gcp", url: "http://127.0.0.1:1", clock, log: () => {} }, stop.signal);
  await rejects(asking, /enough/);
});
