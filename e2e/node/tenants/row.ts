/** For tests: a row of the tenant matrix, and how a gRPC method is called with names of things. */
import type { GrpcClient } from "#grpc/client.ts";
import type { Method } from "#wire/message.ts";
import type { Names } from "./names.ts";
import type { CallerName } from "./world.ts";

export type GrpcCaller = { readonly grpc: GrpcClient; readonly executor: string; readonly tenant: string };

export type Case<C> = {
  readonly what?: string;
  readonly run: (as: C, named: Names) => Promise<unknown>;
  /**
   * Why mill itself gets the same answer for its own and for missing things; left out: it does not, which is checked.
   */
  readonly alike?: string;
  /** The callers that are answered at all, if that does not depend on what is named: all others must be refused. */
  readonly answers?: readonly CallerName[];
  /** A list, which is empty for a caller that has nothing, without another page. */
  readonly empty?: boolean;
};

export type GrpcRow = {
  readonly method: Pick<Method<unknown, unknown>, "path">;
  readonly cases: readonly Case<GrpcCaller>[];
};

/** In this order: what a caller may rightly do for itself comes after what it could see of that. */
export type GrpcRows = Readonly<Record<"reads" | "changes" | "own", readonly GrpcRow[]>>;

export const first = async (stream: AsyncIterable<unknown>): Promise<unknown> => {
  for await (const message of stream) return message;
  return "nothing";
};

export const row = <Q, R>(
  method: Method<Q, R>,
  request: (named: Names, as: GrpcCaller) => Q,
  more: Omit<Case<GrpcCaller>, "run"> = {},
): GrpcRow => ({
  method,
  cases: [
    {
      ...more,
      run: (as, named) =>
        method.streams === "server"
          ? first(as.grpc.serverStream(method, request(named, as)))
          : as.grpc.unary(method, request(named, as)),
    },
  ],
});

/** The callers that get what belongs to no tenant, by the policy's action. */
const answered = {
  everyone: ["all", "member", "viewer", "executor", "cache", "nobody"],
  known: ["all", "member", "viewer", "executor", "cache"],
  "cluster.map": ["all", "member", "viewer", "executor"],
  "cluster.read": ["all", "viewer"],
  "cache.read": ["all", "member", "executor", "cache"],
  operators: [],
} as const satisfies Record<string, readonly CallerName[]>;

export const clusterOnly = (who: keyof typeof answered) => ({
  alike: "it tells of the cluster or the node, and of no tenant",
  answers: answered[who],
});
