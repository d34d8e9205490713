/**
 * The HTTP client of an installed agent: a few connections that stay open, and little memory. `fetch` would take 17 MB
 * more than the whole agent may, and a TLS connection for every report more CPU than a node with 10,000 agents has.
 */
import { readFileSync } from "node:fs";
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { Fault } from "#base/fault.ts";
import type { Fetch } from "#http/client.ts";

export type OutboundPlace = {
  /** The node's address, such as https://eu.example:8980. */
  readonly server: string;
  /** Who signs certificates there, as PEM; left out: whom this machine trusts. */
  readonly ca?: string | undefined;
  /** Read for every call, so that it may be replaced. */
  readonly tokenFile: string;
};

export type Outbound = {
  readonly fetch: Fetch;
  /** When a call succeeded last, by the monotonic clock; undefined before the first. */
  readonly lastAnswerMs: () => number | undefined;
  close(): void;
};

/** One of them is the stream of goals. */
const socketsMax = 8;
const idleMsMax = 20_000;
const answerBytesMax = 64 * 1024 * 1024;

export function outbound({ server, ca, tokenFile }: OutboundPlace, nowMs: () => number): Outbound {
  const base = new URL(server);
  const isTls = base.protocol === "https:";
  const pool = { keepAlive: true, maxSockets: socketsMax, timeout: 0, keepAliveMsecs: idleMsMax };
  const agent = isTls ? new HttpsAgent({ ...pool, ...(ca !== undefined && { ca }) }) : new HttpAgent(pool);
  const request = isTls ? requestHttps : requestHttp;
  let lastAnswerMs: number | undefined;

  const once = (path: string, init: RequestInit): Promise<IncomingMessage> => {
    const { method = "GET", signal, body } = init;
    const token = readFileSync(tokenFile, "utf8").trim();
    const headers = { ...(init.headers as Readonly<Record<string, string>>), authorization: `Bearer ${token}` };
    const options: RequestOptions = { agent, method, headers, ...(signal && { signal }) };
    const answer = Promise.withResolvers<IncomingMessage>();
    const sent = request(new URL(path, base), options, (incoming) => {
      if ((incoming.statusCode ?? 0) < 400) lastAnswerMs = nowMs();
      answer.resolve(incoming);
    });
    sent.on("error", (cause: NodeJS.ErrnoException) => {
      // The node closed an idle connection just when it was used again: nothing was asked yet.
      if (sent.reusedSocket && cause.code === "ECONNRESET") answer.resolve(once(path, init));
      else
        answer.reject(new Fault("unavailable", "reach node", { server, errno: cause.code, why: cause.message }, cause));
    });
    sent.end(typeof body === "string" ? body : undefined);
    return answer.promise;
  };
  return {
    fetch: async (path, init) => asResponse(await once(path, init)),
    lastAnswerMs: () => lastAnswerMs,
    close: () => agent.destroy(),
  };
}

/** What `callEndpoint` needs of a Response, which itself is what takes the memory. */
function asResponse(incoming: IncomingMessage): Response {
  const { statusCode: status = 0 } = incoming;
  const text = async (): Promise<string> => {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of incoming as AsyncIterable<Uint8Array>) {
      if ((bytes += part.length) > answerBytesMax)
        throw new Fault("exhausted", "read answer", { bytesMax: answerBytesMax });
      parts.push(part);
    }
    return Buffer.concat(parts).toString("utf8");
  };
  const body = {
    [Symbol.asyncIterator]: () => (incoming as AsyncIterable<Uint8Array>)[Symbol.asyncIterator](),
    cancel: () => Promise.resolve(void incoming.resume()),
  };
  const answer = {
    ok: status >= 200 && status < 300,
    status,
    body,
    text,
    json: async () => JSON.parse(await text()) as unknown,
  };
  return answer as unknown as Response;
}
