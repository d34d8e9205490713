// Generated from proto/google/longrunning/operations.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { Any } from "#wire/generated/google/protobuf/any.ts";
import { Duration } from "#wire/generated/google/protobuf/duration.ts";
import { Empty } from "#wire/generated/google/protobuf/empty.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";

/** Something that has been begun. */
export type Operation = {
  /** By which it is asked for. */
  readonly name: string;
  /** The progress, in a message of the service that started it. */
  readonly metadata?: Any | undefined;
  /** Whether it has ended; then one of the two below is there. */
  readonly done: boolean;
  /** How it ended. */
  readonly result?:
    /** It failed. */
    | { readonly kind: "error"; readonly value: Status }
    /** It went well. */
    | { readonly kind: "response"; readonly value: Any }
    | undefined;
};

export const Operation: Message<Operation> = {
  typeName: "google.longrunning.Operation",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.metadata !== undefined) {
      const start = to.open(18, message.metadata.value.length);
      Any.write(message.metadata, to);
      to.close(start, message.metadata.value.length);
    }
    if (message.done) {
      to.bool(24, message.done);
    }
    switch (message.result?.kind) {
      case "error": {
        const start = to.open(34);
        Status.write(message.result.value, to);
        to.close(start);
        break;
      }
      case "response": {
        const start = to.open(42, message.result.value.value.length);
        Any.write(message.result.value, to);
        to.close(start, message.result.value.value.length);
        break;
      }
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let metadata = before?.metadata;
    let done = before === undefined ? false : before.done;
    let result = before?.result;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          metadata = Any.read(from, stop, metadata);
          from.leave(stop);
          break;
        }
        case 24: {
          done = from.bool();
          break;
        }
        case 34: {
          const stop = from.enter();
          result = { kind: "error", value: Status.read(from, stop, result?.kind === "error" ? result.value : undefined) };
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          result = { kind: "response", value: Any.read(from, stop, result?.kind === "response" ? result.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, metadata, done, result };
  },
};

/** Asks for one operation. */
export type GetOperationRequest = {
  /** The operation. */
  readonly name: string;
};

export const GetOperationRequest: Message<GetOperationRequest> = {
  typeName: "google.longrunning.GetOperationRequest",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name };
  },
};

/** Asks for operations. */
export type ListOperationsRequest = {
  /** A filter, in the syntax of the service. */
  readonly filter: string;
  /** How many at most. */
  readonly pageSize: number;
  /** Where the page before ended. */
  readonly pageToken: string;
  /** What their names begin with. */
  readonly name: string;
};

export const ListOperationsRequest: Message<ListOperationsRequest> = {
  typeName: "google.longrunning.ListOperationsRequest",
  write(message, to) {
    if (message.filter !== "") {
      to.string(10, message.filter);
    }
    if (message.pageSize !== 0) {
      to.int32(16, message.pageSize);
    }
    if (message.pageToken !== "") {
      to.string(26, message.pageToken);
    }
    if (message.name !== "") {
      to.string(34, message.name);
    }
  },
  read(from, end, before) {
    let filter = before === undefined ? "" : before.filter;
    let pageSize = before === undefined ? 0 : before.pageSize;
    let pageToken = before === undefined ? "" : before.pageToken;
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          filter = from.string();
          break;
        }
        case 16: {
          pageSize = from.int32();
          break;
        }
        case 26: {
          pageToken = from.string();
          break;
        }
        case 34: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { filter, pageSize, pageToken, name };
  },
};

/** Some operations. */
export type ListOperationsResponse = {
  /** These. */
  readonly operations: readonly Operation[];
  /** Where the next page begins; empty on the last one. */
  readonly nextPageToken: string;
};

export const ListOperationsResponse: Message<ListOperationsResponse> = {
  typeName: "google.longrunning.ListOperationsResponse",
  write(message, to) {
    for (const one of message.operations) {
      const start = to.open(10);
      Operation.write(one, to);
      to.close(start);
    }
    if (message.nextPageToken !== "") {
      to.string(18, message.nextPageToken);
    }
  },
  read(from, end, before) {
    const operations: Operation[] = before === undefined ? [] : (before.operations as Operation[]);
    let nextPageToken = before === undefined ? "" : before.nextPageToken;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          operations.push(Operation.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          nextPageToken = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { operations, nextPageToken };
  },
};

/** Asks to stop one operation. */
export type CancelOperationRequest = {
  /** The operation. */
  readonly name: string;
};

export const CancelOperationRequest: Message<CancelOperationRequest> = {
  typeName: "google.longrunning.CancelOperationRequest",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name };
  },
};

/** Asks to forget one operation. */
export type DeleteOperationRequest = {
  /** The operation. */
  readonly name: string;
};

export const DeleteOperationRequest: Message<DeleteOperationRequest> = {
  typeName: "google.longrunning.DeleteOperationRequest",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name };
  },
};

/** Waits for one operation. */
export type WaitOperationRequest = {
  /** The operation. */
  readonly name: string;
  /** How long at most. */
  readonly timeout?: Duration | undefined;
};

export const WaitOperationRequest: Message<WaitOperationRequest> = {
  typeName: "google.longrunning.WaitOperationRequest",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.timeout !== undefined) {
      const start = to.open(18);
      Duration.write(message.timeout, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let timeout = before?.timeout;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          timeout = Duration.read(from, stop, timeout);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, timeout };
  },
};

/** Looks after operations that other services have begun. */
export const Operations = {
  typeName: "google.longrunning.Operations",
  methods: {
    /** Those whose name begins so. */
    listOperations: {
      name: "ListOperations",
      path: "/google.longrunning.Operations/ListOperations",
      request: ListOperationsRequest,
      response: ListOperationsResponse,
      streams: "none",
    },
    /** One as it is now. */
    getOperation: {
      name: "GetOperation",
      path: "/google.longrunning.Operations/GetOperation",
      request: GetOperationRequest,
      response: Operation,
      streams: "none",
    },
    /** Forgets one, without stopping it. */
    deleteOperation: {
      name: "DeleteOperation",
      path: "/google.longrunning.Operations/DeleteOperation",
      request: DeleteOperationRequest,
      response: Empty,
      streams: "none",
    },
    /** Asks one to stop. */
    cancelOperation: {
      name: "CancelOperation",
      path: "/google.longrunning.Operations/CancelOperation",
      request: CancelOperationRequest,
      response: Empty,
      streams: "none",
    },
    /** Waits until one has ended, or for some time. */
    waitOperation: {
      name: "WaitOperation",
      path: "/google.longrunning.Operations/WaitOperation",
      request: WaitOperationRequest,
      response: Operation,
      streams: "none",
    },
  },
} as const satisfies Service;
