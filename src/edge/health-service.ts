/** grpc.health.v1: whether this node, and each of its services, accepts calls. */
import type { Clock } from "#base/clock.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Handlers } from "#grpc/service.ts";
import type { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { HealthCheckResponse_ServingStatus as Serving } from "#wire/generated/grpc/health/v1/health.ts";

/** "" is the node as a whole; the others are named as in their .proto files. */
export type HealthOf = (service: string) => "serving" | "not serving" | undefined;

const watchEveryMs = 1_000;

export function healthHandlers<P>(
  healthOf: HealthOf,
  services: () => readonly string[],
  clock: Clock,
  /** Aborted when the node stops: watchers must not delay that. */
  closing: AbortSignal,
): Handlers<typeof Health, P> {
  const statusOf = (service: string): number => {
    const health = healthOf(service);
    return health === undefined
      ? Serving.SERVICE_UNKNOWN
      : health === "serving"
        ? Serving.SERVING
        : Serving.NOT_SERVING;
  };
  return {
    check: ({ service }) => {
      const status = statusOf(service);
      if (status === Serving.SERVICE_UNKNOWN) throw new GrpcError(grpcCode.notFound, `there is no service ${service}`);
      return { status };
    },
    list: () => ({ statuses: new Map(["", ...services()].map((service) => [service, { status: statusOf(service) }])) }),
    async *watch({ service }, call) {
      let lastStatus: number | undefined;
      while (!call.signal.aborted && !closing.aborted) {
        const status = statusOf(service);
        if (status !== lastStatus) yield { status };
        lastStatus = status;
        await clock.sleep(watchEveryMs, call.signal);
      }
    },
  };
}
