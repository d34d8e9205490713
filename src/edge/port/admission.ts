/** From the credentials of a call to the principal that handlers see; the same for gRPC and HTTP. */
import type { Clock } from "#base/clock.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Authenticator, TaskVerdict } from "#edge/identity/authenticate.ts";
import { ConnectionIdentity } from "#edge/identity/connection-identity.ts";
import type { Identified } from "#edge/identity/identified.ts";
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import { readPeerCertificate } from "#edge/tls/peer-certificate.ts";
import type { Peer } from "./port.ts";
import { authorize, type Action } from "#access/policy.ts";
import type { Principal } from "#access/principal.ts";
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
  readonly #callers = new WeakMap<Peer, ConnectionIdentity>();

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

  identify(peer: Peer, authorization: string | undefined): Identified | Promise<Identified> {
    let caller = this.#callers.get(peer);
    if (!caller) {
      const certificate = peer.tls && readPeerCertificate(peer.tls);
      const isTask = this.#tasks && (() => this.#tasks?.(peer) ?? "no");
      caller = new ConnectionIdentity(this.#authenticator, this.#clock, { certificate, address: peer.address, isTask });
      this.#callers.set(peer, caller);
    }
    const known = caller.identify(authorization);
    return known instanceof Promise ? known.then((later) => accepted(later, peer)) : accepted(known, peer);
  }

  /**
   * The sender of a request over plain HTTP: by its token or, without one, by its browser session. Whether a page of
   * another site sent it is checked before (http/cross-site.ts).
   */
  identifyRequest(
    peer: Peer,
    headers: Headers,
    authorization: string | undefined = headers.get("authorization") ?? undefined,
  ): Identified | Promise<Identified> {
    const session = authorization === undefined ? sessionOf(headers.get("cookie")) : undefined;
    if (session === undefined || !this.#sessions) return this.identify(peer, authorization);
    return this.#sessions.find(session).then((known) => accepted(known, peer));
  }

  /** The principal, for gRPC. For an action that needs no identity an unknown caller is admitted as undefined. */
  admit(peer: Peer, authorization: string | undefined, action: Action): Admitted | Promise<Admitted> {
    const known = this.identify(peer, authorization);
    return known instanceof Promise ? known.then((later) => this.#judged(later, action)) : this.#judged(known, action);
  }

  #judged(known: Identified, action: Action): Admitted {
    const anyone = authorize(undefined, action).ok;
    if (!known.ok) {
      if (anyone) return undefined;
      throw this.error(known.refusal);
    }
    return known.principal;
  }

  /** The caller over plain HTTP, if it may do this: for an action on a tenant's data, in all tenants. */
  async judge(peer: Peer, headers: Headers, action: Action): Promise<AdmissionResult> {
    const known = await this.identifyRequest(peer, headers);
    if (!known.ok) return known;
    const judged = authorize(known.principal, action);
    return judged.ok ? known : judged;
  }

  /** Throws unless the principal may do it in this tenant. */
  require(principal: Admitted, action: Action, tenant?: string): void {
    const judged = authorize(principal, action, tenant);
    if (!judged.ok) throw this.error(judged.refusal);
  }

  error(refusal: Refusal): GrpcError {
    this.#refused(refusal);
    const code = refusalStatus(refusal).grpc;
    return new GrpcError(code || grpcCode.permissionDenied, refusal.message);
  }
}

export type AdmissionResult =
  | { readonly ok: true; readonly principal: Principal; readonly untilMs: number }
  | { readonly ok: false; readonly refusal: Refusal };

export type Admitted = Principal | undefined;

/** Tells the connection's slot who is on it. */
function accepted(known: Identified, { slot }: Peer): Identified {
  if (known.ok) slot?.accepted(known.principal);
  return known;
}
