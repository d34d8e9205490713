/** The few calls of a Kubernetes API server that pools need: JSON both ways, with limits on time and bytes. */
import { readFile } from "node:fs/promises";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, type FaultCode } from "#base/fault.ts";

export type KubePorts = {
  readonly api: string;
  readonly namespace: string;
  /** Left out: the API server asks for none. */
  readonly tokenFile?: string | undefined;
  /** Left out: whom this machine trusts. */
  readonly caFile?: string | undefined;
  readonly clock: Pick<Clock, "monotonicMs">;
};

export type KubeCall = {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the namespace: "pods", "pods/x". */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
};

const callMs = 30_000;
const answerBytesMax = 64 * 1024 * 1024;
const lineBytesMax = 4 * 1024 * 1024;
const socketsMax = 16;
const tokenMs = 60_000;

const Status = z.looseObject({
  kind: z.literal("Status").optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  code: z.number().optional(),
});

/** The API server refused. `reason` is one of its own words, such as AlreadyExists. */
export class KubeRefusal extends Fault {
  readonly status: number;
  readonly reason: string;

  constructor(doing: string, status: number, { reason = "", message = "" }: z.output<typeof Status>) {
    const code: FaultCode = status >= 500 || status === 429 ? "unavailable" : status === 404 ? "not-found" : "invalid";
    const rights = status === 403 ? "see deploy/kubernetes/runners for what the node's account needs" : undefined;
    super(code, doing, { status, reason, why: message.slice(0, 500), try: rights });
    this.status = status;
    this.reason = reason;
  }
}

export const isRefusal = (error: unknown, status: number, reason?: string): boolean =>
  error instanceof KubeRefusal && error.status === status && (reason === undefined || error.reason === reason);

export class KubeClient {
  readonly #ports: KubePorts;
  readonly #url: URL;
  readonly #agent: HttpAgent;
  #token: { readonly text: string; readonly readMs: number } | undefined;

  private constructor(ports: KubePorts, ca: string | undefined) {
    this.#ports = ports;
    this.#url = new URL(ports.api);
    const options = { keepAlive: true, maxSockets: socketsMax };
    this.#agent =
      this.#url.protocol === "https:"
        ? new HttpsAgent({ ...options, ...(ca !== undefined && { ca }) })
        : new HttpAgent(options);
  }

  static async open(ports: KubePorts): Promise<KubeClient> {
    const { caFile } = ports;
    return new KubeClient(ports, caFile === undefined ? undefined : await textOf(caFile));
  }

  async call(call: KubeCall, signal?: AbortSignal): Promise<unknown> {
    const doing = doingOf(call);
    const ending = AbortSignal.any([AbortSignal.timeout(callMs), ...(signal ? [signal] : [])]);
    const answer = await this.#send(call, ending);
    const text = await textIn(answer, doing);
    const value = parsed(text, doing);
    const status = answer.statusCode ?? 0;
    if (status >= 400) throw new KubeRefusal(doing, status, Status.catch({}).parse(value));
    return value;
  }

  /** One JSON value a line, as long as the API server goes on. */
  async *watch(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncIterable<unknown> {
    const call: KubeCall = { method: "GET", path, query: { ...query, watch: "1" } };
    const doing = doingOf(call);
    const answer = await this.#send(call, signal);
    const status = answer.statusCode ?? 0;
    if (status >= 400)
      throw new KubeRefusal(doing, status, Status.catch({}).parse(parsed(await textIn(answer, doing), doing)));
    let rest = "";
    answer.setEncoding("utf8");
    for await (const part of answer as AsyncIterable<string>) {
      const lines = (rest + part).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > lineBytesMax) throw new Fault("exhausted", doing, { why: "one event is too long" });
      for (const line of lines) if (line.trim() !== "") yield parsed(line, doing);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #send({ method, path, query = {}, body }: KubeCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { namespace } = this.#ports;
    const url = new URL(`/api/v1/namespaces/${namespace}/${path}`, this.#url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const text = body && JSON.stringify(body);
    const token = await this.#bearer();
    const headers = {
      accept: "application/json",
      "user-agent": "millrace",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(text !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const sent = send(url, { method, headers, agent: this.#agent, signal }, resolve);
    sent.on("error", (cause) => {
      reject(
        new Fault("unavailable", doingOf({ method, path }), { server: this.#url.origin, why: cause.message }, cause),
      );
    });
    sent.end(text);
    return await promise;
  }

  async #bearer(): Promise<string | undefined> {
    const { tokenFile, clock } = this.#ports;
    if (tokenFile === undefined) return undefined;
    const nowMs = clock.monotonicMs();
    if (!this.#token || nowMs - this.#token.readMs > tokenMs)
      this.#token = { text: (await textOf(tokenFile)).trim(), readMs: nowMs };
    return this.#token.text;
  }
}

const doingOf = ({ method, path }: Pick<KubeCall, "method" | "path">): string =>
  `ask the Kubernetes API server: ${method} ${path}`;

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Fault("unavailable", "read a file for the Kubernetes API server", { file, errno: code }, cause);
  }
}

async function textIn(answer: IncomingMessage, doing: string): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of answer as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > answerBytesMax) throw new Fault("exhausted", doing, { why: "the answer is too long" });
      parts.push(part);
    }
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw new Fault("unavailable", doing, { why: cause instanceof Error ? cause.message : String(cause) }, cause);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parsed(text: string, doing: string): unknown {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (cause) {
    throw new Fault("unavailable", doing, { why: "the answer is no JSON" }, cause);
  }
}
