/** What all services of this door share. */
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store, TenantStore } from "#blobs/store.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import { isFault } from "#base/fault.ts";
import { RequestMetadata } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import type { BuildCaller } from "./caller.ts";
import { checkedInstance } from "./names.ts";
import { notFound } from "./refusals.ts";
import type { BuildSettings } from "./settings.ts";
import type { TrustRules } from "./cache/trust-rules.ts";
import type { Seen } from "./why/seen.ts";

export type BuildPorts = {
  readonly clock: Clock;
  readonly store: Store;
  readonly index: ActionIndex;
  readonly settings: BuildSettings;
  /** One for the whole node: it remembers the rules that it read. */
  readonly trust: TrustRules;
  /** Remembers what missed and what was stored, so that callers can ask why. */
  readonly seen?: Pick<Seen, "missed" | "stored"> | undefined;
  /** Called for every lookup of a result. */
  readonly looked?: ((tenant: string, outcome: "hit" | "miss") => void) | undefined;
  /** Something stored turned out to be no good; for the log. */
  readonly report: (doing: string, error: unknown) => void;
};

/** One call as the services see it. */
export type BuildCall = {
  readonly caller: BuildCaller;
  readonly headers: { get(name: string): string | undefined };
  readonly signal: AbortSignal;
  readonly metadata: RequestMetadata | undefined;
  /** The trace that it is recorded in, if it is. */
  trace?: string | undefined;
};

const metadataName = "build.bazel.remote.execution.v2.requestmetadata-bin";

/** Looked at when asked for: nearly no call needs any of it. */
export class CallView<P> implements BuildCall {
  readonly caller: BuildCaller;
  trace: string | undefined;
  readonly #call: ServerCall<P>;

  constructor(call: ServerCall<P>, caller: BuildCaller) {
    this.#call = call;
    this.caller = caller;
  }

  get headers(): BuildCall["headers"] {
    return this.#call.headers;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  /** A courtesy of the client's: what cannot be read is as good as none. */
  get metadata(): RequestMetadata | undefined {
    const bytes = this.#call.binaryMetadata(metadataName);
    if (!bytes) return undefined;
    try {
      return decode(RequestMetadata, bytes);
    } catch (error) {
      if (isFault(error, "invalid")) return undefined;
      throw error;
    }
  }
}

/** Throws for an instance that cannot be or is not served, the same for every call. */
export function servedInstance(name: string, { instances }: BuildSettings): string {
  const instance = checkedInstance(name);
  if (instances && !instances.includes(instance)) throw notFound(`there is no instance ${JSON.stringify(instance)}`);
  return instance;
}

export const storeOf = ({ store }: BuildPorts, { caller }: BuildCall): TenantStore => store.forTenant(caller.tenant);

const resourceNameHeader = "build.bazel.remote.execution.v2.resource-name";

/** Proxies route by this header without looking into messages; it must not say something else than they do. */
export function resourceHeaderProblem({ headers }: BuildCall, name: string): string | undefined {
  const given = headers.get(resourceNameHeader);
  return given === undefined || given === name ? undefined : `the header ${resourceNameHeader} names another resource`;
}
