// Generated from proto/millrace/work/v1/streams.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";

/** A stream of one attempt. */
export type StreamName = {
  /** The executor that holds the claim, as in Reserve. */
  readonly executor: string;
  /** The task, such as t0-1. */
  readonly task: string;
  /** The claim's token. */
  readonly token: number;
  /** What the task calls it, such as output. */
  readonly name: string;
};

export const StreamName: Message<StreamName> = {
  typeName: "millrace.work.v1.StreamName",
  write(message, to) {
    if (message.executor !== "") {
      to.string(10, message.executor);
    }
    if (message.task !== "") {
      to.string(18, message.task);
    }
    if (message.token !== 0) {
      to.int64(24, message.token);
    }
    if (message.name !== "") {
      to.string(34, message.name);
    }
  },
  read(from, end, before) {
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? "" : before.task;
    let token = before === undefined ? 0 : before.token;
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          executor = from.string();
          break;
        }
        case 18: {
          task = from.string();
          break;
        }
        case 24: {
          token = from.int64();
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
    return { executor, task, token, name };
  },
};

/** Bytes for a stream. */
export type AppendRequest = {
  /** The stream. */
  readonly stream?: StreamName | undefined;
  /** How many bytes of it were acknowledged before. */
  readonly offset: number;
  /** What follows them, 1 MiB at most. */
  readonly data: Uint8Array;
};

export const AppendRequest: Message<AppendRequest> = {
  typeName: "millrace.work.v1.AppendRequest",
  write(message, to) {
    if (message.stream !== undefined) {
      const start = to.open(10);
      StreamName.write(message.stream, to);
      to.close(start);
    }
    if (message.offset !== 0) {
      to.int64(16, message.offset);
    }
    if (message.data.length > 0) {
      to.data(26, message.data);
    }
  },
  read(from, end, before) {
    let stream = before?.stream;
    let offset = before === undefined ? 0 : before.offset;
    let data = before === undefined ? noBytes : before.data;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stream = StreamName.read(from, stop, stream);
          from.leave(stop);
          break;
        }
        case 16: {
          offset = from.int64();
          break;
        }
        case 26: {
          data = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stream, offset, data };
  },
};

/** The bytes are durable. */
export type AppendResponse = Readonly<Record<never, never>>;

export const AppendResponse: Message<AppendResponse> = {
  typeName: "millrace.work.v1.AppendResponse",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** Which stream has ended. */
export type SealRequest = {
  /** The stream. */
  readonly stream?: StreamName | undefined;
};

export const SealRequest: Message<SealRequest> = {
  typeName: "millrace.work.v1.SealRequest",
  write(message, to) {
    if (message.stream !== undefined) {
      const start = to.open(10);
      StreamName.write(message.stream, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stream = before?.stream;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stream = StreamName.read(from, stop, stream);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stream };
  },
};

/** Where its bytes are. */
export type SealResponse = {
  /** The blob, such as sha256:<hash>/<size>. */
  readonly digest: string;
};

export const SealResponse: Message<SealResponse> = {
  typeName: "millrace.work.v1.SealResponse",
  write(message, to) {
    if (message.digest !== "") {
      to.string(10, message.digest);
    }
  },
  read(from, end, before) {
    let digest = before === undefined ? "" : before.digest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          digest = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digest };
  },
};

/** Which stream is not needed any more. */
export type DropRequest = {
  /** The stream. */
  readonly stream?: StreamName | undefined;
};

export const DropRequest: Message<DropRequest> = {
  typeName: "millrace.work.v1.DropRequest",
  write(message, to) {
    if (message.stream !== undefined) {
      const start = to.open(10);
      StreamName.write(message.stream, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stream = before?.stream;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stream = StreamName.read(from, stop, stream);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stream };
  },
};

/** It is gone. */
export type DropResponse = Readonly<Record<never, never>>;

export const DropResponse: Message<DropResponse> = {
  typeName: "millrace.work.v1.DropResponse",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** For programs that run work elsewhere. */
export const Streams = {
  typeName: "millrace.work.v1.Streams",
  methods: {
    /** Adds bytes to a stream. They are durable when it answers. */
    append: {
      name: "Append",
      path: "/millrace.work.v1.Streams/Append",
      request: AppendRequest,
      response: AppendResponse,
      streams: "none",
    },
    /** Ends a stream: its bytes become a blob, which a result may name. */
    seal: {
      name: "Seal",
      path: "/millrace.work.v1.Streams/Seal",
      request: SealRequest,
      response: SealResponse,
      streams: "none",
    },
    /** Drops a stream whose bytes are in a result. */
    drop: {
      name: "Drop",
      path: "/millrace.work.v1.Streams/Drop",
      request: DropRequest,
      response: DropResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
