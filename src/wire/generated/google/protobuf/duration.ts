// Generated from proto/google/protobuf/duration.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** A signed length of time. */
export type Duration = {
  /** Whole seconds. */
  readonly seconds: number;
  /** The rest in nanoseconds, with the sign of the whole. */
  readonly nanos: number;
};

export const Duration: Message<Duration> = {
  typeName: "google.protobuf.Duration",
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
