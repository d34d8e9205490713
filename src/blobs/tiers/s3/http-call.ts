/** One request over HTTP/1.1, with limits on connections and waiting, and a body that its reader pulls. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Fault } from "#base/fault.ts";

export type HttpCall = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly signal?: AbortSignal;
};

export type HttpAnswer = {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** Must be read to the end or abandoned: either frees the connection. */
  readonly body: AsyncIterable<Uint8Array>;
};

export type HttpCaller = Disposable & {
  /** Throws Fault "unavailable" if no answer comes. */
  call(request: HttpCall): Promise<HttpAnswer>;
};

export type HttpCallerOptions = {
  readonly connectionsMax: number;
  /** A call without a byte in either direction for this long is aborted. */
  readonly idleMs: number;
};

export function createHttpCaller({ connectionsMax, idleMs }: HttpCallerOptions): HttpCaller {
  const settings = { keepAlive: true, maxSockets: connectionsMax, scheduling: "lifo" } as const;
  const agents = { "http:": new HttpAgent(settings), "https:": new HttpsAgent(settings) };
  const call = ({ method, url, headers, body, signal }: HttpCall): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const isPlain = url.protocol === "http:";
      const failed = (error: Error): void =>
        reject(new Fault("unavailable", "call", { method, host: url.host, why: error.message }, error));
      const options = {
        method,
        agent: isPlain ? agents["http:"] : agents["https:"],
        headers: body ? { ...headers, "content-length": body.length } : headers,
        ...(signal && { signal }),
      };
      const request = isPlain ? httpRequest(url, options) : httpsRequest(url, options);
      request.setTimeout(idleMs, () => request.destroy(new Error(`silent for ${idleMs} ms`)));
      request.on("error", failed);
      request.on("response", (response) =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: bodyOf(response, url) }),
      );
      request.end(body);
    });
  return {
    call,
    [Symbol.dispose]() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

async function* bodyOf(response: IncomingMessage, url: URL): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of response) yield part as Uint8Array;
  } catch (error) {
    throw new Fault("unavailable", "read an answer", { host: url.host, why: (error as Error).message }, error);
  } finally {
    response.destroy();
  }
}

export async function textOf({ body }: HttpAnswer, lengthMax = 8 * 1024 * 1024): Promise<string> {
  return (await bytesOf(body, lengthMax)).toString("utf8");
}

export async function bytesOf(parts: AsyncIterable<Uint8Array>, lengthMax: number): Promise<Buffer> {
  const all: Uint8Array[] = [];
  let length = 0;
  for await (const part of parts) {
    length += part.length;
    if (length > lengthMax) throw new Fault("unavailable", "read an answer", { lengthMax, why: "it is too long" });
    all.push(Uint8Array.from(part));
  }
  return Buffer.concat(all, length);
}

/** Frees the connection of an answer whose body is not needed. */
export async function dropBody(answer: HttpAnswer): Promise<void> {
  await textOf(answer, 64 * 1024).catch(() => {});
}
