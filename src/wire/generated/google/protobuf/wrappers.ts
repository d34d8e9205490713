// Generated from proto/google/protobuf/wrappers.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";

/** A double that may be absent. */
export type DoubleValue = {
  /** The number. */
  readonly value: number;
};

export const DoubleValue: Message<DoubleValue> = {
  typeName: "google.protobuf.DoubleValue",
  write(message, to) {
    if (!Object.is(message.value, 0)) {
      to.double(9, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? 0 : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 9: {
          value = from.double();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** A 64-bit integer that may be absent. */
export type Int64Value = {
  /** The number. */
  readonly value: number;
};

export const Int64Value: Message<Int64Value> = {
  typeName: "google.protobuf.Int64Value",
  write(message, to) {
    if (message.value !== 0) {
      to.int64(8, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? 0 : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          value = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** An unsigned 64-bit integer that may be absent. */
export type UInt64Value = {
  /** The number. */
  readonly value: number;
};

export const UInt64Value: Message<UInt64Value> = {
  typeName: "google.protobuf.UInt64Value",
  write(message, to) {
    if (message.value !== 0) {
      to.uint64(8, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? 0 : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          value = from.uint64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** A 32-bit integer that may be absent. */
export type Int32Value = {
  /** The number. */
  readonly value: number;
};

export const Int32Value: Message<Int32Value> = {
  typeName: "google.protobuf.Int32Value",
  write(message, to) {
    if (message.value !== 0) {
      to.int32(8, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? 0 : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          value = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** An unsigned 32-bit integer that may be absent. */
export type UInt32Value = {
  /** The number. */
  readonly value: number;
};

export const UInt32Value: Message<UInt32Value> = {
  typeName: "google.protobuf.UInt32Value",
  write(message, to) {
    if (message.value !== 0) {
      to.uint32(8, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? 0 : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          value = from.uint32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** A truth value that may be absent. */
export type BoolValue = {
  /** Yes or no. */
  readonly value: boolean;
};

export const BoolValue: Message<BoolValue> = {
  typeName: "google.protobuf.BoolValue",
  write(message, to) {
    if (message.value) {
      to.bool(8, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? false : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          value = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** Text that may be absent. */
export type StringValue = {
  /** The text. */
  readonly value: string;
};

export const StringValue: Message<StringValue> = {
  typeName: "google.protobuf.StringValue",
  write(message, to) {
    if (message.value !== "") {
      to.string(10, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};

/** Bytes that may be absent. */
export type BytesValue = {
  /** The bytes. */
  readonly value: Uint8Array;
};

export const BytesValue: Message<BytesValue> = {
  typeName: "google.protobuf.BytesValue",
  write(message, to) {
    if (message.value.length > 0) {
      to.data(10, message.value);
    }
  },
  read(from, end, before) {
    let value = before === undefined ? noBytes : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          value = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { value };
  },
};
