/** What goes wrong behind this door's routes, as problems; and routes whose errors are turned into them. */
import { detailsOf, grpcCode, GrpcError } from "#grpc/status.ts";
import { refusalOfInputs } from "#doors/build/execute/execution-refusals.ts";
import type { Endpoint, EndpointDeclaration } from "#http/endpoint.ts";
import { Problem } from "#http/problem.ts";
import { route, type Handler, type Route } from "#http/route.ts";
import { PreconditionFailure } from "#wire/generated/google/rpc/error_details.ts";
import { asRefusal } from "./refusal.ts";

const statuses: ReadonlyMap<number, number> = new Map([
  [grpcCode.invalidArgument, 400],
  [grpcCode.unauthenticated, 401],
  [grpcCode.permissionDenied, 403],
  [grpcCode.notFound, 404],
  [grpcCode.alreadyExists, 409],
  [grpcCode.failedPrecondition, 412],
  [grpcCode.resourceExhausted, 429],
  [grpcCode.unavailable, 503],
]);

/** Undefined for what is a bug of ours. */
export function buildProblem(thrown: unknown): Problem | undefined {
  const error = refusalOfInputs(thrown);
  if (!(error instanceof GrpcError)) return asRefusal(error);
  const status = statuses.get(error.code);
  if (status === undefined) return undefined;
  const missing = detailsOf(error, PreconditionFailure).flatMap(({ violations }) =>
    violations.map((one) => one.subject),
  );
  return new Problem(status, error.message, { cause: thrown, ...(missing.length > 0 && { more: { missing } }) });
}

export const buildRoute = <D extends EndpointDeclaration>(declared: Endpoint<D>, handle: Handler<D>): Route =>
  route(declared, async (call) => {
    try {
      return await handle(call);
    } catch (error) {
      throw buildProblem(error) ?? error;
    }
  });
