// Generated from proto/google/rpc/status.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { Any } from "#wire/generated/google/protobuf/any.ts";

/** The outcome of a call that failed. */
export type Status = {
  /** A number of google.rpc.Code; 0 is success. */
  readonly code: number;
  /** For developers, in English. */
  readonly message: string;
  /** More about it, each of a type that the caller may know. */
  readonly details: readonly Any[];
};

export const Status: Message<Status> = {
  typeName: "google.rpc.Status",
  write(message, to) {
    if (message.code !== 0) {
      to.int32(8, message.code);
    }
    if (message.message !== "") {
      to.string(18, message.message);
    }
    for (const one of message.details) {
      const start = to.open(26, one.value.length);
      Any.write(one, to);
      to.close(start, one.value.length);
    }
  },
  read(from, end, before) {
    let code = before === undefined ? 0 : before.code;
    let message = before === undefined ? "" : before.message;
    const details: Any[] = before === undefined ? [] : (before.details as Any[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          code = from.int32();
          break;
        }
        case 18: {
          message = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          details.push(Any.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { code, message, details };
  },
};
