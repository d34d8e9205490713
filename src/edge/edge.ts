/** The edge, composed: ports, authentication, policy, gRPC services, HTTP routes, metrics. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Clock } from "#base/clock.ts";
import type { Entries } from "#base/entries.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { isGrpcType } from "#grpc/content-type.ts";
import { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { h2LimitsDefault, type H2Limits } from "#h2/connection/limits.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { ServerReflection as ServerReflectionAlpha } from "#wire/generated/grpc/reflection/v1alpha/reflection.ts";
import { Admission, type Admitted, type TaskWatch } from "./port/admission.ts";
import type { OwnerToken } from "./identity/authenticate.ts";
import type { OwnTokens } from "./identity/jwt/verifier.ts";
import { continueWhenRead } from "./port/continue-when-read.ts";
import { serveFetch } from "./port/fetch-over-h2.ts";
import { serveConnect } from "./port/socket-over-h2.ts";
import type { SocketWire } from "#http/live/upgrade.ts";
import { healthHandlers } from "./health-service.ts";
import { openIdentity } from "./identity/identity.ts";
import type { Identity } from "./identity/identity-config.ts";
import type { Log } from "./log/log.ts";
import { edgeMetrics, type MethodMetrics } from "./metrics/edge.ts";
import { createLogin, ownerSignIn, type Login, type LoginLink } from "./identity/login.ts";
import { processMetrics } from "./metrics/process.ts";
import { MetricsRegistry } from "./metrics/registry.ts";
import type { Action } from "#access/policy.ts";
import { ConnectionSlots, slotLimitsDefault, type SlotLimits } from "./port/connection-slots.ts";
import {
  countHttp1Call,
  countUpgrade,
  http1CallsOn,
  openPort,
  peerOf,
  type ListenAddress,
  type Peer,
  type Port,
} from "./port/port.ts";
import type { Refusal } from "#access/refusal.ts";
import { reflectionHandler } from "./reflection-service.ts";
import { httpRoutes, type ServeElsewhere } from "./port/routes.ts";
import { Sessions } from "./identity/sessions.ts";
import type { Tls } from "./tls/tls-config.ts";
import { tlsServerOptions } from "./tls/tls-files.ts";
import { TlsReload } from "./tls/tls-reload.ts";

export type EdgeOptions = {
  readonly clock: Clock;
  readonly listen: readonly ListenAddress[];
  readonly identity: Identity;
  /** The data folder's token: its holder is an operator, on this machine only. */
  readonly owner?: OwnerToken | undefined;
  /** Tokens that this cluster issues itself; left out: there are none. */
  readonly own?: OwnTokens | undefined;
  /** Distinguishes tasks of this node from other callers on this machine; left out: there are no tasks. */
  readonly tasks?: TaskWatch | undefined;
  readonly tls?: Tls | undefined;
  readonly h2?: Partial<H2Limits>;
  /** Limits on who may hold a connection. */
  readonly slots?: Partial<SlotLimits>;
  readonly messageBytesMax?: number;
  /** For all incoming messages together. */
  readonly bodyBytesMax?: number;
  /** Adds services; returns the action of each of their methods, by path. */
  readonly services: (server: GrpcServer<Admitted>, admission: Admission) => ReadonlyMap<string, Action>;
  /** What nodes of the cluster share; left out: browsers that signed in at this node are unknown to others. */
  readonly entries?: Entries | undefined;
  /** What is served over plain HTTP besides the edge's own routes. */
  readonly http?: (admission: Admission, registry: MetricsRegistry, login: Login) => HttpServed;
  /** Why the node does not take work, as text for everybody; empty: it is ready. */
  readonly notReady: () => readonly string[];
  readonly log: Log;
};

/** What is served over plain HTTP besides the edge's own routes. */
export type HttpServed = {
  /** Undefined for an address that is not served. */
  readonly serve: ServeElsewhere;
  /** Takes over a connection that asks to become a WebSocket; left out: none may. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer, peer: Peer) => void;
  /** The same for a stream of HTTP/2; left out: extended CONNECT is not offered. */
  readonly connect?: (request: Request, wire: SocketWire, peer: Peer) => void;
};

export type { Login };

export type Edge = {
  readonly ports: readonly number[];
  readonly metrics: MetricsRegistry;
  /** With TLS: calls back with the served certificate as PEM, at once and whenever it changes. */
  onCertificate(onPem: (pem: string) => void): void;
  /** A link that signs a browser in as the owner of the data folder, once. */
  loginLink(): Promise<LoginLink>;
  close(): Promise<void>;
};

const codeNames = Object.fromEntries(Object.entries(grpcCode).map(([name, code]) => [code, name]));
const builtIn: readonly (readonly [string, Action])[] = [
  ...Object.values(Health.methods).map(({ path }) => [path, "health"] as const),
  ...Object.values(ServerReflection.methods).map(({ path }) => [path, "service.describe"] as const),
  ...Object.values(ServerReflectionAlpha.methods).map(({ path }) => [path, "service.describe"] as const),
];

/** A health request contains the name of a service. Everybody may send one. */
const healthRequestBytesMax = 1024;
const tooManyCalls = new GrpcError(grpcCode.resourceExhausted, "too many calls at once without credentials");

/** Other requests for an upgrade, such as Java clients' for h2c, are answered as if they had not asked for one. */
const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

/** An upload may take its time: its reader gives up on a client that sends nothing. */
const http1Limits = ({ firstCallMs }: SlotLimits) => ({
  requestTimeout: 3_600_000,
  headersTimeout: firstCallMs,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 32 * 1024,
  connectionsCheckingInterval: Math.ceil(firstCallMs / 2),
});

export async function startEdge(options: EdgeOptions): Promise<Edge> {
  const { clock, log, notReady } = options;
  await using undo = new AsyncDisposableStack();
  const trouble = (error: unknown): void => log.warn("identity-trouble", { error });
  const { owner, own } = options;
  const identity = undo.use(await openIdentity(options.identity, { clock, onTrouble: trouble, owner, own }));
  const closing = new AbortController();
  const registry = new MetricsRegistry();
  undo.use(processMetrics(registry));
  const slots = new ConnectionSlots(
    { ...slotLimitsDefault, ...options.slots },
    { clock, closed: (reason) => metrics.closed(reason) },
  );
  const metrics = edgeMetrics(registry, {
    connections: () => slots.count(),
    certificateExpiresAtMs: () => reload?.current.expiresAtMs ?? 0,
  });
  const byMethod = new Map<string, MethodMetrics>();
  const methodMetrics = (path: string): MethodMetrics => {
    let found = byMethod.get(path);
    if (!found) byMethod.set(path, (found = metrics.method(path)));
    return found;
  };
  const { authenticator } = identity;
  const { entries = memoryEntries(() => clock.wallMs()) } = options;
  const stillGranted = authenticator.stillGranted.bind(authenticator);
  const sessions = new Sessions({ clock, entries, stillGranted });
  const refused = ({ reason }: Refusal): void => metrics.refused(reason);
  const admission = new Admission({ authenticator, clock, refused, sessions, tasks: options.tasks });
  const login = createLogin(sessions, authenticator);

  const actionOf = new Map<string, Action>(builtIn);
  const server: GrpcServer<Admitted> = new GrpcServer<Admitted>({
    clock,
    ...(options.messageBytesMax === undefined ? {} : { messageBytesMax: options.messageBytesMax }),
    ...(options.bodyBytesMax === undefined ? {} : { bodyBytesMax: options.bodyBytesMax }),
    admit: (path, headers, peer) => {
      const from = peer as Peer;
      const action = actionOf.get(path) ?? "cluster.admin";
      const admitted = admission.admit(from, headers.get("authorization"), action);
      if (admitted === undefined && from.slot?.hasTooManyCalls) throw tooManyCalls;
      return admitted;
    },
    ended: ({ path, code, tookMs, bytesIn, bytesOut }) => {
      const of = methodMetrics(path);
      of.ended(codeNames[code] ?? String(code), tookMs / 1_000);
      of.received.add(bytesIn);
      of.sent.add(bytesOut);
    },
    report: (method, error) => log.error("call-failed", { method, error }),
  });
  for (const [path, action] of options.services(server, admission)) actionOf.set(path, action);
  const services = (): readonly string[] =>
    [...new Set(server.paths.map((path) => path.split("/")[1] ?? ""))].toSorted();
  const health = (service: string) =>
    service !== "" && !services().includes(service) ? undefined : notReady().length === 0 ? "serving" : "not serving";
  server.add(Health, healthHandlers(health, services, clock, closing.signal), healthRequestBytesMax);
  server.add(ServerReflection, { serverReflectionInfo: reflectionHandler(services) });
  server.add(ServerReflectionAlpha, { serverReflectionInfo: reflectionHandler(services) });

  const served = options.http?.(admission, registry, login);
  const routes = httpRoutes({
    admission,
    login,
    registry,
    notReady,
    elsewhere: served?.serve,
  });
  const failed = (error: unknown): void => log.error("request-failed", { error });
  const listener = getRequestListener(
    (request, { incoming }) => routes.fetch(request, { peer: peerOf(incoming.socket) }),
    { overrideGlobalObjects: false },
  );
  const called = (request: IncomingMessage, response: ServerResponse): void => {
    countHttp1Call(request, response);
    void listener(request, response);
  };
  const http1 = createServer({ ...http1Limits(slots.limits), shouldUpgradeCallback: wantsWebSocket }, called);
  http1.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    countUpgrade(request);
    if (served?.upgrade) served.upgrade(request, socket, head, peerOf(request.socket));
    else socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });
  http1.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    continueWhenRead(request, response);
    called(request, response);
  });
  // A client that is idle or does not read its answer is disconnected; one that waits for an answer is not.
  http1.setTimeout(options.h2?.sendStallMs ?? h2LimitsDefault.sendStallMs, (socket) => {
    if (socket.writableLength > 0 || http1CallsOn(socket) === 0) socket.destroy();
  });
  // from then on it applies its time limits to connections, although another server accepted them
  http1.emit("listening");
  undo.defer(() => void http1.close());

  const reload = options.tls && undo.use(await startTls(options.tls, clock, log));
  const ports: Port[] = [];
  for (const address of options.listen) {
    const opened = await openPort({
      address,
      clock,
      http1,
      ...(reload && !("socket" in address) && { tls: tlsServerOptions(options.tls) }),
      ...(options.h2 && { h2: options.h2 }),
      takesProtocols: served?.connect !== undefined,
      onRequest(stream, headers, ended, peer) {
        if (headers.protocol !== undefined && served?.connect)
          return serveConnect(stream, headers, ended, (request, wire) => served.connect?.(request, wire, peer));
        return isGrpcType(headers.get("content-type"))
          ? server.open(stream, headers, ended, peer)
          : serveFetch(stream, headers, ended, (request) => routes.fetch(request, { peer }), failed);
      },
      slots,
      accepted: (protocol) => metrics.connections(protocol).add(),
      report: (_doing, error) => failed(error),
    });
    undo.defer(() => opened.close());
    ports.push(opened);
    if (reload) undo.defer(reload.keepUpToDate(opened));
  }
  undo.defer(() => closing.abort());
  const owned = undo.move();
  return {
    ports: ports.map(({ port }) => port),
    metrics: registry,
    onCertificate: (onPem) => void reload?.keepUpToDate({ setSecureContext: ({ cert }) => onPem(String(cert)) }),
    loginLink: () => login.linkFor(ownerSignIn(owner)),
    close: () => owned.disposeAsync(),
  };
}

const startTls = (tls: Tls, clock: Clock, log: Log): Promise<TlsReload> =>
  TlsReload.start(tls, {
    clock,
    onReload: () => log.info("tls-reloaded", {}),
    onTrouble: (error) => log.warn("tls-trouble", { error }),
  });
