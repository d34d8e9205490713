// Generated from proto/google/protobuf/any.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";

/** A message of any type. */
export type Any = {
  /** Ends in a slash and the type's full name: "type.googleapis.com/google.rpc.ErrorInfo". */
  readonly typeUrl: string;
  /** The message as bytes. */
  readonly value: Uint8Array;
};

export const Any: Message<Any> = {
  typeName: "google.protobuf.Any",
  write(message, to) {
    if (message.typeUrl !== "") {
      to.string(10, message.typeUrl);
    }
    if (message.value.length > 0) {
      to.data(18, message.value);
    }
  },
  read(from, end, before) {
    let typeUrl = before === undefined ? "" : before.typeUrl;
    let value = before === undefined ? noBytes : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          typeUrl = from.string();
          break;
        }
        case 18: {
          value = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { typeUrl, value };
  },
};
