/** The event feed as a gRPC service: `Events.Read`. */
import type { Action } from "#access/policy.ts";
import { allTenants } from "#access/principal.ts";
import { homeTenant } from "#access/caller.ts";
import { isFault } from "#base/fault.ts";
import type { Admission, Admitted } from "#edge/port/admission.ts";
import type { Feed } from "#feed/feed.ts";
import type { FeedFilter } from "#feed/filter.ts";
import type { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { feedKinds, type FeedItem, type FeedKind } from "#kernel/read/feed.ts";
import { tagOf } from "#shard/client/history.ts";
import { statusOfFault } from "#shard/work/rejections.ts";
import { Events, type EventItem, type ReadEventsRequest } from "#wire/generated/millrace/work/v1/events.ts";

const togetherMax = 500;
const listMax = 16;
/** After so long without an item the cursor is sent alone, and a dead connection is noticed. */
const quietMs = 10_000;

export function serveEvents(
  server: GrpcServer<Admitted>,
  admission: Admission,
  feed: Feed,
  leaving: AbortSignal,
): ReadonlyMap<string, Action> {
  server.add(Events, {
    async *read(request, { caller, signal: ended }) {
      const tenant = tenantOf(admission, caller, request.tenant);
      const signal = AbortSignal.any([ended, leaving]);
      try {
        const start = request.cursor === "" ? (request.fromOldest ? "oldest" : "now") : { cursor: request.cursor };
        using reader = await feed.open(filterOf(request, tenant), start);
        yield { items: [], cursor: reader.cursor };
        while (!signal.aborted) {
          const items = await reader.take(togetherMax, signal);
          feed.counts.delivered += items.length;
          if (items.length > 0) yield { items: items.map(written), cursor: reader.cursor };
          else {
            await reader.news(quietMs, signal);
            if (reader.lag === 0) yield { items: [], cursor: reader.cursor };
          }
        }
      } catch (error) {
        if (!isFault(error)) throw error;
        if (error.code === "exhausted") feed.counts.shed += 1;
        const { code, message, details } = statusOfFault(error);
        throw new GrpcError(code || grpcCode.unknown, message, details);
      }
    },
  });
  return new Map(Object.values(Events.methods).map(({ path }) => [path, "service.describe"] as const));
}

/** Undefined: all tenants', for who may see all and names none. */
function tenantOf(admission: Admission, caller: Admitted, named: string): string | undefined {
  const home = caller && homeTenant(caller.principal);
  const tenant = named === "" ? home : named;
  admission.require(caller, "work.read", tenant);
  return named === "" && caller?.principal.tenant === allTenants ? undefined : tenant;
}

function filterOf({ kinds, doors, tags, job }: ReadEventsRequest, tenant: string | undefined): FeedFilter {
  const wrong = kinds.find((kind) => !(feedKinds as readonly string[]).includes(kind));
  if (wrong !== undefined)
    throw new GrpcError(grpcCode.invalidArgument, `kinds: ${wrong.slice(0, 50)} is none of ${feedKinds.join(", ")}`);
  if (doors.length > listMax || tags.length > listMax || tags.some((tag) => !tag.includes("=")))
    throw new GrpcError(grpcCode.invalidArgument, `at most ${listMax} doors and tags; a tag is name=value`);
  return {
    tenant,
    kinds: kinds as readonly FeedKind[],
    doors,
    ...(tags.length > 0 && { tags: tags.map(tagOf) }),
    ...(job !== "" && { job }),
  };
}

const written = ({ at, tags = {}, number = 0, reason = "", stage, task, step, ...rest }: FeedItem): EventItem => ({
  ...rest,
  atMs: at,
  tags: new Map(Object.entries(tags)),
  number,
  reason,
  stage: stage && { ...stage, signal: stage.signal ?? "" },
  task: task && {
    ...task,
    planning: task.planning ?? false,
    attempt: task.attempt ?? 0,
    executor: task.executor ?? "",
    outcome: task.outcome ?? "",
    next: task.next ?? "",
  },
  step,
});
