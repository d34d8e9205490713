// Generated from proto/grpc/health/v1/health.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { sortedEntries } from "#wire/writer.ts";

/** The states of a service. */
export const HealthCheckResponse_ServingStatus = {
  /** Not known yet. */
  UNKNOWN: 0,
  /** Ready. */
  SERVING: 1,
  /** There, and not ready: starting, draining, or in trouble. */
  NOT_SERVING: 2,
  /** There is no such service. Only Watch says so; Check fails with NOT_FOUND. */
  SERVICE_UNKNOWN: 3,
} as const;

/** Asks about one service. */
export type HealthCheckRequest = {
  /** Its full name; empty for the server as a whole. */
  readonly service: string;
};

export const HealthCheckRequest: Message<HealthCheckRequest> = {
  typeName: "grpc.health.v1.HealthCheckRequest",
  write(message, to) {
    if (message.service !== "") {
      to.string(10, message.service);
    }
  },
  read(from, end, before) {
    let service = before === undefined ? "" : before.service;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          service = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { service };
  },
};

/** How it is. */
export type HealthCheckResponse = {
  /** The state. */
  readonly status: number;
};

export const HealthCheckResponse: Message<HealthCheckResponse> = {
  typeName: "grpc.health.v1.HealthCheckResponse",
  write(message, to) {
    if (message.status !== 0) {
      to.int32(8, message.status);
    }
  },
  read(from, end, before) {
    let status = before === undefined ? 0 : before.status;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          status = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { status };
  },
};

/** Asks about all services. */
export type HealthListRequest = Readonly<Record<never, never>>;

export const HealthListRequest: Message<HealthListRequest> = {
  typeName: "grpc.health.v1.HealthListRequest",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** How they all are. */
export type HealthListResponse = {
  /** By the service's full name. */
  readonly statuses: ReadonlyMap<string, HealthCheckResponse>;
};

export const HealthListResponse: Message<HealthListResponse> = {
  typeName: "grpc.health.v1.HealthListResponse",
  write(message, to) {
    if (message.statuses.size > 0) {
      for (const [key, one] of sortedEntries(message.statuses)) {
        const entry = to.open(10);
        to.string(10, key);
        const start = to.open(18);
        HealthCheckResponse.write(one, to);
        to.close(start);
        to.close(entry);
      }
    }
  },
  read(from, end, before) {
    const statuses: Map<string, HealthCheckResponse> = before === undefined ? new Map<string, HealthCheckResponse>() : (before.statuses as Map<string, HealthCheckResponse>);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          let key = "";
          let value: HealthCheckResponse | undefined = undefined;
          while (from.pos < stop) {
            const inner = from.tag();
            if (inner === 10) key = from.string();
            else if (inner === 18) {
              const valueStop = from.enter();
              value = HealthCheckResponse.read(from, valueStop, value);
              from.leave(valueStop);
            } else from.skip(inner);
          }
          from.leave(stop);
          statuses.set(key, value ?? HealthCheckResponse.read(from, from.pos));
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { statuses };
  },
};

/** Whether services are ready. */
export const Health = {
  typeName: "grpc.health.v1.Health",
  methods: {
    /** How it is now. */
    check: {
      name: "Check",
      path: "/grpc.health.v1.Health/Check",
      request: HealthCheckRequest,
      response: HealthCheckResponse,
      streams: "none",
    },
    /** How all of them are now. */
    list: {
      name: "List",
      path: "/grpc.health.v1.Health/List",
      request: HealthListRequest,
      response: HealthListResponse,
      streams: "none",
    },
    /** How it is now, and again whenever that changes. */
    watch: {
      name: "Watch",
      path: "/grpc.health.v1.Health/Watch",
      request: HealthCheckRequest,
      response: HealthCheckResponse,
      streams: "server",
    },
  },
} as const satisfies Service;
