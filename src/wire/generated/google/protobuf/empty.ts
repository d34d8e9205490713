// Generated from proto/google/protobuf/empty.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** Nothing to say. */
export type Empty = Readonly<Record<never, never>>;

export const Empty: Message<Empty> = {
  typeName: "google.protobuf.Empty",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};
