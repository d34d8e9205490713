/**
 * WebSockets: the same defence, identity, policy and validation as any other route. On HTTP/1.1 a connection is
 * upgraded; on HTTP/2 a stream is connected (RFC 8441), of which this file sees only the `SocketWire`.
 */
import { STATUS_CODES, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
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

/** A stream of HTTP/2 on which a WebSocket was asked for: exactly one of the two is called, once. */
export type SocketWire = {
  /** Answers that the WebSocket is open; what it carries goes through the result. */
  readonly accept: () => Duplex;
  readonly refuse: (problem: Problem) => void;
};

export type ServeConnect = (request: Request, wire: SocketWire, identify: Identify) => void;

export function serveSockets(
  routes: readonly Route[],
  ports: UpgradePorts,
): { readonly upgrade: ServeUpgrade; readonly connect: ServeConnect } {
  const talks = new Talks(routes, ports);
  const server = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax, clientTracking: false });
  return {
    upgrade(incoming, socket, head, identify) {
      socket.on("error", () => socket.destroy());
      const gone = new AbortController();
      socket.once("close", () => gone.abort(new Error("the WebSocket connection has gone")));
      void talks.open(requestOf(incoming, gone.signal), identify, {
        status: 101,
        accept: (accepted) => server.handleUpgrade(incoming, socket, head, accepted),
        refuse: (problem) => refuse(socket, problem),
      });
    },
    connect(request, wire, identify) {
      void talks.open(request, identify, {
        status: 200,
        accept(accepted) {
          if (request.headers.get("sec-websocket-version") !== "13")
            throw new Problem(400, "sec-websocket-version: 13 is spoken here");
          accepted(socketOn(wire.accept(), server.options));
        },
        refuse: wire.refuse,
      });
    },
  };
}

/** How one version of HTTP answers. */
type Answering = {
  readonly status: number;
  readonly accept: (accepted: (socket: WebSocket) => void) => void;
  readonly refuse: (problem: Problem) => void;
};

class Talks {
  readonly #ports: UpgradePorts;
  readonly #router: Router<Route>;
  #open = 0;

  constructor(routes: readonly Route[], ports: UpgradePorts) {
    this.#ports = ports;
    this.#router = new Router(routes.filter(({ answer }) => answer.kind === "socket"));
  }

  /** Never rejects: what goes wrong is answered and reported. */
  async open(request: Request, identify: Identify, answering: Answering): Promise<void> {
    const ports = this.#ports;
    const startedMs = ports.clock.monotonicMs();
    let endpoint: string | undefined;
    const ended = (status: number): void => {
      const tookMs = ports.clock.monotonicMs() - startedMs;
      if (endpoint !== undefined) ports.ended?.({ endpoint, status, tookMs });
    };
    try {
      const found = this.#router.find("GET", new URL(request.url).pathname);
      if (found.kind !== "route") throw new Problem(404, "no WebSocket is served at this address");
      endpoint = found.route.name;
      const call = await judge({ request, identify, ...found, isUpgrade: true });
      if (this.#open >= ports.socketsMax) throw new Problem(503, "too many WebSockets are open", { headers: retry });
      const handle = (await found.route.handle({ ...call, body: undefined })) as { readonly body: Talk };
      request.signal.throwIfAborted(); // the peer has left, and nothing would end the conversation
      answering.accept((socket) => {
        ended(answering.status);
        this.#talk(found.route, socket, handle.body);
      });
    } catch (error) {
      if (request.signal.aborted) return;
      const { problem, isOurs } = asProblem(ports.asProblem?.(error) ?? error);
      if (isOurs) ports.report("WebSocket upgrade", error);
      ended(problem.status);
      answering.refuse(problem);
    }
  }

  #talk({ name, answer }: Route, socket: WebSocket, talk: Talk): void {
    if (answer.kind !== "socket") return socket.terminate();
    this.#open += 1;
    socket.once("close", () => (this.#open -= 1));
    const conversation = new SocketConversation(socket, answer.receives, this.#ports.clock);
    talk(conversation).then(
      () => conversation.close(),
      (error: unknown) => {
        if (!conversation.signal.aborted) this.#ports.report(name, error);
        conversation.close(error);
      },
    );
  }
}

type Talk = (conversation: Conversation) => Promise<void>;

const retry = { "retry-after": "5" } as const;

/** `ws` does the same once it has answered an upgrade, with the same options; its types do not show it. */
function socketOn(duplex: Duplex, options: object): WebSocket {
  const socket = new WebSocket(null as never, undefined, options) as WebSocket & {
    setSocket(duplex: Duplex, head: Buffer, options: object): void;
  };
  socket.setSocket(duplex, Buffer.alloc(0), options);
  return socket;
}

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
