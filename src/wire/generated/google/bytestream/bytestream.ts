// Generated from proto/google/bytestream/bytestream.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";

/** Asks for bytes. */
export type ReadRequest = {
  /** The resource. */
  readonly resourceName: string;
  /** The first byte wanted, counted from 0. */
  readonly readOffset: number;
  /** How many bytes at most; 0 for all. */
  readonly readLimit: number;
};

export const ReadRequest: Message<ReadRequest> = {
  typeName: "google.bytestream.ReadRequest",
  write(message, to) {
    if (message.resourceName !== "") {
      to.string(10, message.resourceName);
    }
    if (message.readOffset !== 0) {
      to.int64(16, message.readOffset);
    }
    if (message.readLimit !== 0) {
      to.int64(24, message.readLimit);
    }
  },
  read(from, end, before) {
    let resourceName = before === undefined ? "" : before.resourceName;
    let readOffset = before === undefined ? 0 : before.readOffset;
    let readLimit = before === undefined ? 0 : before.readLimit;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          resourceName = from.string();
          break;
        }
        case 16: {
          readOffset = from.int64();
          break;
        }
        case 24: {
          readLimit = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { resourceName, readOffset, readLimit };
  },
};

/** A piece of a resource. */
export type ReadResponse = {
  /** The next bytes. */
  readonly data: Uint8Array;
};

export const ReadResponse: Message<ReadResponse> = {
  typeName: "google.bytestream.ReadResponse",
  write(message, to) {
    if (message.data.length > 0) {
      to.data(82, message.data);
    }
  },
  read(from, end, before) {
    let data = before === undefined ? noBytes : before.data;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 82: {
          data = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { data };
  },
};

/** A piece to write. */
export type WriteRequest = {
  /** The resource; in the first message, and the same or nothing in the others. */
  readonly resourceName: string;
  /** Where the piece belongs: as far as the pieces before it went. */
  readonly writeOffset: number;
  /** Nothing follows. A resource is there only after this. */
  readonly finishWrite: boolean;
  /** The bytes. */
  readonly data: Uint8Array;
};

export const WriteRequest: Message<WriteRequest> = {
  typeName: "google.bytestream.WriteRequest",
  write(message, to) {
    if (message.resourceName !== "") {
      to.string(10, message.resourceName);
    }
    if (message.writeOffset !== 0) {
      to.int64(16, message.writeOffset);
    }
    if (message.finishWrite) {
      to.bool(24, message.finishWrite);
    }
    if (message.data.length > 0) {
      to.data(82, message.data);
    }
  },
  read(from, end, before) {
    let resourceName = before === undefined ? "" : before.resourceName;
    let writeOffset = before === undefined ? 0 : before.writeOffset;
    let finishWrite = before === undefined ? false : before.finishWrite;
    let data = before === undefined ? noBytes : before.data;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          resourceName = from.string();
          break;
        }
        case 16: {
          writeOffset = from.int64();
          break;
        }
        case 24: {
          finishWrite = from.bool();
          break;
        }
        case 82: {
          data = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { resourceName, writeOffset, finishWrite, data };
  },
};

/** The end of writing. */
export type WriteResponse = {
  /** How many bytes the resource has now. */
  readonly committedSize: number;
};

export const WriteResponse: Message<WriteResponse> = {
  typeName: "google.bytestream.WriteResponse",
  write(message, to) {
    if (message.committedSize !== 0) {
      to.int64(8, message.committedSize);
    }
  },
  read(from, end, before) {
    let committedSize = before === undefined ? 0 : before.committedSize;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          committedSize = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { committedSize };
  },
};

/** Asks how far writing has got. */
export type QueryWriteStatusRequest = {
  /** The resource. */
  readonly resourceName: string;
};

export const QueryWriteStatusRequest: Message<QueryWriteStatusRequest> = {
  typeName: "google.bytestream.QueryWriteStatusRequest",
  write(message, to) {
    if (message.resourceName !== "") {
      to.string(10, message.resourceName);
    }
  },
  read(from, end, before) {
    let resourceName = before === undefined ? "" : before.resourceName;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          resourceName = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { resourceName };
  },
};

/** How far writing has got. */
export type QueryWriteStatusResponse = {
  /** How many bytes are kept: go on from there. */
  readonly committedSize: number;
  /** Nothing is missing. */
  readonly complete: boolean;
};

export const QueryWriteStatusResponse: Message<QueryWriteStatusResponse> = {
  typeName: "google.bytestream.QueryWriteStatusResponse",
  write(message, to) {
    if (message.committedSize !== 0) {
      to.int64(8, message.committedSize);
    }
    if (message.complete) {
      to.bool(16, message.complete);
    }
  },
  read(from, end, before) {
    let committedSize = before === undefined ? 0 : before.committedSize;
    let complete = before === undefined ? false : before.complete;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          committedSize = from.int64();
          break;
        }
        case 16: {
          complete = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { committedSize, complete };
  },
};

/** Reads and writes resources. */
export const ByteStream = {
  typeName: "google.bytestream.ByteStream",
  methods: {
    /** The bytes from an offset on. */
    read: {
      name: "Read",
      path: "/google.bytestream.ByteStream/Read",
      request: ReadRequest,
      response: ReadResponse,
      streams: "server",
    },
    /** Writes a resource from the beginning, or goes on where QueryWriteStatus said. */
    write: {
      name: "Write",
      path: "/google.bytestream.ByteStream/Write",
      request: WriteRequest,
      response: WriteResponse,
      streams: "client",
    },
    /** How much of a resource has been written. */
    queryWriteStatus: {
      name: "QueryWriteStatus",
      path: "/google.bytestream.ByteStream/QueryWriteStatus",
      request: QueryWriteStatusRequest,
      response: QueryWriteStatusResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
