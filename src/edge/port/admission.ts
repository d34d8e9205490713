/** From the credentials of a call to the caller that handlers see: the same value for gRPC and HTTP. */
import type { Clock } from "#base/clock.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Authenticator, TaskVerdict } from "#edge/identity/authenticate.ts";
import { ConnectionIdentity } from "#edge/identity/connection-identity.ts";
import type { Identified } from "#edge/identity/identified.ts";
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import { readPeerCertificate } from "#edge/tls/peer-certificate.ts";
import type { Peer } from "./port.ts";
import { authorize, type Action } from "#access/policy.ts";
import type { Caller, CallerResult } from "#access/caller.ts";
import { refusalStatus } from "#access/refusal-status.ts";
import type { Refusal } from "#access/refusal.ts";
import { sessionOf, type Sessions } from "#edge/identity/sessions.ts";

/** Whether the process at the other end of a connection is a task of this node. */
export type TaskWatch = (connection: Peer) => TaskVerdict | Promise<TaskVerdict>;

export type AdmissionPorts = {
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly refused: (refusal: Refusal) => void;
  readonly sessions?: Sessions | undefined;
  readonly tasks?: TaskWatch | undefined;
};

export class Admission {
  readonly #authenticator: Authenticator;
  readonly #clock: Clock;
  readonly #refused: (refusal: Refusal) => void;
  readonly #sessions: Sessions | undefined;
  readonly #tasks: TaskWatch | undefined;
  readonly #connections = new WeakMap<Peer, Connection>();

  constructor({ authenticator, clock, refused, sessions, tasks }: AdmissionPorts) {
    this.#authenticator = authenticator;
    this.#clock = clock;
    this.#refused = refused;
    this.#sessions = sessions;
    this.#tasks = tasks;
  }

  /** Whether the only thing known about the caller is that it is on this machine. */
  isUnproven({ address, tls }: Peer, authorization: string | null): boolean {
    return (
      this.#authenticator.trustsItsMachine && tls === undefined && authorization === null && isLoopbackHost(address)
    );
  }

  identify(peer: Peer, authorization: string | undefined): CallerResult | Promise<CallerResult> {
    let connection = this.#connections.get(peer);
    if (!connection) this.#connections.set(peer, (connection = new Connection(this.#identityOf(peer))));
    const known = connection.identity.identify(authorization);
    if (!(known instanceof Promise)) return connection.callerOf(known, peer);
    const of = connection;
    return known.then((later) => of.callerOf(later, peer));
  }

  #identityOf(peer: Peer): ConnectionIdentity {
    const certificate = peer.tls && readPeerCertificate(peer.tls);
    const isTask = this.#tasks && (() => this.#tasks?.(peer) ?? "no");
    return new ConnectionIdentity(this.#authenticator, this.#clock, { certificate, address: peer.address, isTask });
  }

  /**
   * The sender of a request over plain HTTP: by its token or, without one, by its browser session. Whether a page of
   * another site sent it is checked before (http/cross-site.ts).
   */
  identifyRequest(
    peer: Peer,
    headers: Headers,
    authorization: string | undefined = headers.get("authorization") ?? undefined,
  ): CallerResult | Promise<CallerResult> {
    const session = authorization === undefined ? sessionOf(headers.get("cookie")) : undefined;
    if (session === undefined || !this.#sessions) return this.identify(peer, authorization);
    return this.#sessions.find(session).then((known) => accepted(known, peer));
  }

  /** The caller, for gRPC. For an action that needs no identity an unknown caller is admitted as undefined. */
  admit(peer: Peer, authorization: string | undefined, action: Action): Admitted | Promise<Admitted> {
    const known = this.identify(peer, authorization);
    return known instanceof Promise ? known.then((later) => this.#judged(later, action)) : this.#judged(known, action);
  }

  #judged(known: CallerResult, action: Action): Admitted {
    const anyone = authorize(undefined, action).ok;
    if (!known.ok) {
      if (anyone) return undefined;
      throw this.error(known.refusal);
    }
    return known.caller;
  }

  /** The caller over plain HTTP, if it may do this: for an action on a tenant's data, in all tenants. */
  async judge(peer: Peer, headers: Headers, action: Action): Promise<CallerResult> {
    const known = await this.identifyRequest(peer, headers);
    if (!known.ok) return known;
    const judged = authorize(known.caller.principal, action);
    return judged.ok ? known : judged;
  }

  /** Throws unless the caller may do it in this tenant. */
  require(caller: Admitted, action: Action, tenant?: string): void {
    const judged = authorize(caller?.principal, action, tenant);
    if (!judged.ok) throw this.error(judged.refusal);
  }

  error(refusal: Refusal): GrpcError {
    this.#refused(refusal);
    const code = refusalStatus(refusal).grpc;
    return new GrpcError(code || grpcCode.permissionDenied, refusal.message);
  }
}

/** Undefined: the caller could not be authenticated, and the method is one that needs no credentials. */
export type Admitted = Caller | undefined;

/** Makes the caller once for all calls with the same credentials on one connection. */
class Connection {
  readonly identity: ConnectionIdentity;
  #lastKnown: Identified | undefined;
  #lastResult: CallerResult | undefined;

  constructor(identity: ConnectionIdentity) {
    this.identity = identity;
  }

  callerOf(known: Identified, peer: Peer): CallerResult {
    if (known !== this.#lastKnown || !this.#lastResult) {
      this.#lastResult = callerOn(known, peer);
      this.#lastKnown = known;
    }
    if (known.ok) peer.slot?.accepted(known.principal);
    return this.#lastResult;
  }
}

/** Tells the connection's slot who is on it. */
function accepted(known: Identified, peer: Peer): CallerResult {
  if (known.ok) peer.slot?.accepted(known.principal);
  return callerOn(known, peer);
}

const callerOn = (known: Identified, { address, tls }: Peer): CallerResult =>
  known.ok
    ? { ok: true, caller: { principal: known.principal, untilMs: known.untilMs, address, isTls: tls !== undefined } }
    : known;
