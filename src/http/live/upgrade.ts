/** WebSocket upgrades on HTTP/1.1: the same defence, identity, policy and validation as any other route. */
import { STATUS_CODES, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { asProblem, Problem } from "#http/problem.ts";
import type { Route } from "#http/route.ts";
import { Router } from "#http/router.ts";
import { judge, type HttpPorts, type Identify } from "#http/serve.ts";
import { SocketConversation, type Conversation } from "./socket.ts";

export type UpgradePorts = HttpPorts & {
  /** Conversations at once; more are refused. */
  readonly socketsMax: number;
};

const messageBytesMax = 64 * 1024;

export type ServeUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, identify: Identify) => void;

export function serveUpgrades(routes: readonly Route[], ports: UpgradePorts): ServeUpgrade {
  const router = new Router(routes.filter(({ answer }) => answer.kind === "socket"));
  const server = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax, clientTracking: false });
  let open = 0;
  return (incoming, socket, head, identify) => {
    socket.on("error", () => socket.destroy());
    const gone = new AbortController();
    socket.once("close", () => gone.abort(new Error("the WebSocket connection has gone")));
    const request = requestOf(incoming, gone.signal);
    const startedMs = ports.clock.monotonicMs();
    let endpoint: string | undefined;
    const ended = (status: number): void => {
      const tookMs = ports.clock.monotonicMs() - startedMs;
      if (endpoint !== undefined) ports.ended?.({ endpoint, status, tookMs });
    };
    void (async () => {
      const found = router.find("GET", new URL(request.url).pathname);
      if (found.kind !== "route") throw new Problem(404, "no WebSocket is served at this address");
      endpoint = found.route.name;
      const call = await judge({ request, identify, ...found, isUpgrade: true });
      if (open >= ports.socketsMax) throw new Problem(503, "too many WebSockets are open", { headers: retry });
      const { answer } = found.route;
      if (answer.kind !== "socket") throw new Problem(404, "no WebSocket is served at this address");
      const handle = (await found.route.handle({ ...call, body: undefined })) as { readonly body: Talk };
      server.handleUpgrade(incoming, socket, head, (accepted) => {
        open += 1;
        ended(101);
        accepted.once("close", () => (open -= 1));
        const conversation = new SocketConversation(accepted, answer.receives, ports.clock);
        handle.body(conversation).then(
          () => conversation.close(),
          (error: unknown) => {
            if (!conversation.signal.aborted) ports.report(found.route.name, error);
            conversation.close(error);
          },
        );
      });
    })().catch((error: unknown) => {
      const { problem, isOurs } = asProblem(ports.asProblem?.(error) ?? error);
      if (isOurs) ports.report("WebSocket upgrade", error);
      ended(problem.status);
      refuse(socket, problem);
    });
  };
}

type Talk = (conversation: Conversation) => Promise<void>;

const retry = { "retry-after": "5" } as const;

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  return new Request(`http://${incoming.headers.host ?? "localhost"}${incoming.url ?? "/"}`, { headers, signal });
}

function refuse(socket: Duplex, { status, message, headers }: Problem): void {
  const body = JSON.stringify({ status, title: message });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`,
    "connection: close",
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
