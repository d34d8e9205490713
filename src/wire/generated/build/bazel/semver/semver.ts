// Generated from proto/build/bazel/semver/semver.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** A version, as semver.org counts it. */
export type SemVer = {
  /** Grows when what worked before may not work any more. */
  readonly major: number;
  /** Grows with every addition. */
  readonly minor: number;
  /** Grows with every repair. */
  readonly patch: number;
  /** Not yet released, and how far it is. */
  readonly prerelease: string;
};

export const SemVer: Message<SemVer> = {
  typeName: "build.bazel.semver.SemVer",
  write(message, to) {
    if (message.major !== 0) {
      to.int32(8, message.major);
    }
    if (message.minor !== 0) {
      to.int32(16, message.minor);
    }
    if (message.patch !== 0) {
      to.int32(24, message.patch);
    }
    if (message.prerelease !== "") {
      to.string(34, message.prerelease);
    }
  },
  read(from, end, before) {
    let major = before === undefined ? 0 : before.major;
    let minor = before === undefined ? 0 : before.minor;
    let patch = before === undefined ? 0 : before.patch;
    let prerelease = before === undefined ? "" : before.prerelease;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          major = from.int32();
          break;
        }
        case 16: {
          minor = from.int32();
          break;
        }
        case 24: {
          patch = from.int32();
          break;
        }
        case 34: {
          prerelease = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { major, minor, patch, prerelease };
  },
};
