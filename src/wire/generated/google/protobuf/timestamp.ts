// Generated from proto/google/protobuf/timestamp.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** A point in time, in UTC. */
export type Timestamp = {
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly seconds: number;
  /** The rest in nanoseconds; counts forward, never negative. */
  readonly nanos: number;
};

export const Timestamp: Message<Timestamp> = {
  typeName: "google.protobuf.Timestamp",
  write(message, to) {
    if (message.seconds !== 0) {
      to.int64(8, message.seconds);
    }
    if (message.nanos !== 0) {
      to.int32(16, message.nanos);
    }
  },
  read(from, end, before) {
    let seconds = before === undefined ? 0 : before.seconds;
    let nanos = before === undefined ? 0 : before.nanos;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          seconds = from.int64();
          break;
        }
        case 16: {
          nanos = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { seconds, nanos };
  },
};
