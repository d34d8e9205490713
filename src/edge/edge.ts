/** The edge, put together: ports, who calls, what they may, gRPC services, HTTP routes, metrics. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { getRequestListener } from "@hono/node-server";
import type { Clock } from "#base/clock.ts";
import { isGrpcType } from "#grpc/content-type.ts";
import { GrpcServer } from "#grpc/server.ts";
import { grpcCode } from "#grpc/status.ts";
import type { H2Limits } from "#h2/limits.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { ServerReflection as ServerReflectionAlpha } from "#wire/generated/grpc/reflection/v1alpha/reflection.ts";
import { Admission, type Admitted, type TaskWatch } from "./admission.ts";
import type { OwnerToken } from "./authenticate.ts";
import { continueWhenRead } from "./continue-when-read.ts";
import { serveFetch } from "./fetch-over-h2.ts";
import { healthHandlers } from "./health-service.ts";
import { openIdentity, ownerGrant } from "./identity.ts";
import type { Identity } from "./identity-config.ts";
import type { Log } from "./log.ts";
import { edgeMetrics, type MethodMetrics } from "./metrics-edge.ts";
import { createLogin, type LoginLink } from "./login.ts";
import { processMetrics } from "./metrics-process.ts";
import { MetricsRegistry } from "./metrics-registry.ts";
import type { Action } from "./policy.ts";
import { openPort, peerOf, type Peer, type Port } from "./port.ts";
import { principal } from "./principal.ts";
import type { Refusal } from "./refusal.ts";
import { reflectionHandler } from "./reflection-service.ts";
import { httpRoutes, type ServeElsewhere } from "./routes.ts";
import { Sessions } from "./sessions.ts";
import type { Tls } from "./tls-config.ts";
import { tlsServerOptions } from "./tls-files.ts";
import { TlsReload } from "./tls-reload.ts";

export type EdgeOptions = {
  readonly clock: Clock;
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly identity: Identity;
  /** Of the data folder: an operator's, on this machine. */
  readonly owner?: OwnerToken | undefined;
  /** Tells tasks of this node from other callers on this machine; left out: there are no tasks. */
  readonly tasks?: TaskWatch | undefined;
  readonly tls?: Tls | undefined;
  readonly h2?: Partial<H2Limits>;
  readonly messageBytesMax?: number;
  /** Adds services; answers which action each of their methods is, by path. */
  readonly services: (server: GrpcServer<Admitted>, admission: Admission) => ReadonlyMap<string, Action>;
  /** What is served over plain HTTP besides the edge's own routes. */
  readonly http?: (admission: Admission, registry: MetricsRegistry) => ServeElsewhere;
  /** Whether the node takes work. */
  readonly isReady: () => boolean;
  readonly log: Log;
};

export type Edge = {
  readonly ports: readonly number[];
  readonly metrics: MetricsRegistry;
  /** With TLS: tells the certificate that is shown, as PEM, at once and whenever there is a new one. */
  onCertificate(told: (pem: string) => void): void;
  /** A link that signs a browser in as the owner of the data folder, once. */
  loginLink(): LoginLink;
  close(): Promise<void>;
};

const codeNames = Object.fromEntries(Object.entries(grpcCode).map(([name, code]) => [code, name]));
const builtIn: readonly (readonly [string, Action])[] = [
  ...Object.values(Health.methods).map(({ path }) => [path, "health"] as const),
  ...Object.values(ServerReflection.methods).map(({ path }) => [path, "service.describe"] as const),
  ...Object.values(ServerReflectionAlpha.methods).map(({ path }) => [path, "service.describe"] as const),
];

/** An upload may take its time: whoever reads one gives up on a client that sends nothing. */
const http1Limits = {
  requestTimeout: 3_600_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 32 * 1024,
} as const;

export async function startEdge(options: EdgeOptions): Promise<Edge> {
  const { clock, log, isReady } = options;
  await using undo = new AsyncDisposableStack();
  const trouble = (error: unknown): void => log.warn("identity-trouble", { error });
  const identity = undo.use(await openIdentity(options.identity, { clock, onTrouble: trouble, owner: options.owner }));
  const closing = new AbortController();
  const registry = new MetricsRegistry();
  undo.use(processMetrics(registry));
  let connectionsOpen = 0;
  const metrics = edgeMetrics(registry, { connectionsOpen: () => connectionsOpen });
  const byMethod = new Map<string, MethodMetrics>();
  const methodMetrics = (path: string): MethodMetrics => {
    let found = byMethod.get(path);
    if (!found) byMethod.set(path, (found = metrics.method(path)));
    return found;
  };
  const { authenticator } = identity;
  const sessions = new Sessions(clock);
  const refused = ({ reason }: Refusal): void => metrics.refused(reason);
  const admission = new Admission({ authenticator, clock, refused, sessions, tasks: options.tasks });
  const login = createLogin(sessions, authenticator, admission);

  const actionOf = new Map<string, Action>(builtIn);
  const server: GrpcServer<Admitted> = new GrpcServer<Admitted>({
    clock,
    ...(options.messageBytesMax === undefined ? {} : { messageBytesMax: options.messageBytesMax }),
    admit: (path, headers, peer) =>
      admission.admit(peer as Peer, headers.get("authorization"), actionOf.get(path) ?? "cluster.admin"),
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
    service !== "" && !services().includes(service) ? undefined : isReady() ? "serving" : "not serving";
  server.add(Health, healthHandlers(health, services, clock, closing.signal));
  server.add(ServerReflection, { serverReflectionInfo: reflectionHandler(services) });
  server.add(ServerReflectionAlpha, { serverReflectionInfo: reflectionHandler(services) });

  const routes = httpRoutes({
    admission,
    login,
    registry,
    isReady,
    elsewhere: options.http?.(admission, registry),
  });
  const failed = (error: unknown): void => log.error("request-failed", { error });
  const listener = getRequestListener(
    (request, { incoming }) => routes.fetch(request, { peer: peerOn(incoming.socket) }),
    { overrideGlobalObjects: false },
  );
  const http1 = createServer(http1Limits, (request, response) => void listener(request, response));
  http1.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    continueWhenRead(request, response);
    void listener(request, response);
  });

  const reload = options.tls && undo.use(await startTls(options.tls, clock, log));
  const ports: Port[] = [];
  for (const { host, port } of options.listen) {
    const opened = await openPort({
      host,
      port,
      clock,
      http1,
      ...(reload && { tls: tlsServerOptions(options.tls) }),
      ...(options.h2 && { h2: options.h2 }),
      onRequest: (stream, headers, ended, peer) =>
        isGrpcType(headers.get("content-type"))
          ? server.open(stream, headers, ended, peer)
          : serveFetch(stream, headers, ended, (request) => routes.fetch(request, { peer }), failed),
      counted: (change) => (connectionsOpen += change),
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
    onCertificate: (told) => void reload?.keepUpToDate({ setSecureContext: ({ cert }) => told(String(cert)) }),
    loginLink: () => login.linkFor(principal(ownerGrant, "owner")),
    close: () => owned.disposeAsync(),
  };
}

const peers = new WeakMap<Socket, Peer>();

/** One for each connection, so that what is known of it is found again. */
function peerOn(socket: Socket): Peer {
  let peer = peers.get(socket);
  if (!peer) {
    const tls = "getPeerX509Certificate" in socket ? (socket as TLSSocket) : undefined;
    peers.set(socket, (peer = peerOf(socket, tls)));
  }
  return peer;
}

const startTls = (tls: Tls, clock: Clock, log: Log): Promise<TlsReload> =>
  TlsReload.start(tls, {
    clock,
    onReload: () => log.info("tls-reloaded", {}),
    onTrouble: (error) => log.warn("tls-trouble", { error }),
  });
