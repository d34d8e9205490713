import { deepEqual, equal, match } from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { measure } from "./measure.ts";

const about = { service: "web", release: "j1-1", wave: 0, manifest: "m" };
const times = { after: 0, every: 1_000, samples: 1 };
const vector = (...values: readonly string[]): string =>
  JSON.stringify({
    status: "success",
    data: { resultType: "vector", result: values.map((value) => ({ metric: {}, value: [1, value] })) },
  });

describe("a check over HTTP", () => {
  let answer = "";
  let status = 200;
  let asked = "";
  const server = createServer((request, response) => {
    asked = `${request.method} ${request.url}`;
    request.resume().on("end", () => response.writeHead(status).end(answer));
  });
  before(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve)));
  after(() => server.close());
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = (text: string, code = 200) => {
    [answer, status] = [text, code];
    return measure({ prometheus: url(), query: "rate(e[1m])", max: 1, ...times }, about, new AbortController().signal);
  };

  test("asks Prometheus' API, and the worst of several series decides", async () => {
    deepEqual(await ask(vector("0.5", "2")), { kind: "value", value: 2 });
    match(asked, /^GET \/api\/v1\/query\?query=rate/);
  });

  for (const [name, text, code] of [
    ["an empty vector", vector(), 200],
    ["a value that is no number", vector("NaN"), 200],
    ["an error", "{}", 500],
    ["something else than JSON", "<html>", 200],
    ["an answer that is too long", " ".repeat(2 * 1024 * 1024), 200],
  ] as const)
    test(`HC2: ${name} is no data`, async () => equal((await ask(text, code)).kind, "none"));

  test("a webhook says healthy or not, and why", async () => {
    [answer, status] = [JSON.stringify({ healthy: false, why: "orders fell" }), 200];
    const said = await measure({ webhook: url(), ...times }, about, new AbortController().signal);
    deepEqual(said, { kind: "said", healthy: false, why: "orders fell" });
    match(asked, /^POST/);
  });
});
