// Generated from proto/google/rpc/error_details.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { sortedEntries } from "#wire/writer.ts";
import { Duration } from "#wire/generated/google/protobuf/duration.ts";

/** Why, for programs: compare reason and domain, never messages. */
export type ErrorInfo = {
  /** Names the cause within its domain and never changes. */
  readonly reason: string;
  /** Who defines the reasons: "millrace" for ours. */
  readonly domain: string;
  /** Facts of this case. */
  readonly metadata: ReadonlyMap<string, string>;
};

export const ErrorInfo: Message<ErrorInfo> = {
  typeName: "google.rpc.ErrorInfo",
  write(message, to) {
    if (message.reason !== "") {
      to.string(10, message.reason);
    }
    if (message.domain !== "") {
      to.string(18, message.domain);
    }
    if (message.metadata.size > 0) {
      for (const [key, one] of sortedEntries(message.metadata)) {
        const entry = to.open(26);
        to.string(10, key);
        to.string(18, one);
        to.close(entry);
      }
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? "" : before.reason;
    let domain = before === undefined ? "" : before.domain;
    const metadata: Map<string, string> = before === undefined ? new Map<string, string>() : (before.metadata as Map<string, string>);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          reason = from.string();
          break;
        }
        case 18: {
          domain = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          let key = "";
          let value = "";
          while (from.pos < stop) {
            const inner = from.tag();
            if (inner === 10) key = from.string();
            else if (inner === 18) value = from.string();
            else from.skip(inner);
          }
          from.leave(stop);
          metadata.set(key, value);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason, domain, metadata };
  },
};

/** The call may be made again after a while. */
export type RetryInfo = {
  /** Not before so much time has passed. */
  readonly retryDelay?: Duration | undefined;
};

export const RetryInfo: Message<RetryInfo> = {
  typeName: "google.rpc.RetryInfo",
  write(message, to) {
    if (message.retryDelay !== undefined) {
      const start = to.open(10);
      Duration.write(message.retryDelay, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let retryDelay = before?.retryDelay;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          retryDelay = Duration.read(from, stop, retryDelay);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { retryDelay };
  },
};

/** What is not as it would have to be. */
export type PreconditionFailure = {
  /** All of them. */
  readonly violations: readonly PreconditionFailure_Violation[];
};

export const PreconditionFailure: Message<PreconditionFailure> = {
  typeName: "google.rpc.PreconditionFailure",
  write(message, to) {
    for (const one of message.violations) {
      const start = to.open(10);
      PreconditionFailure_Violation.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const violations: PreconditionFailure_Violation[] = before === undefined ? [] : (before.violations as PreconditionFailure_Violation[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          violations.push(PreconditionFailure_Violation.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { violations };
  },
};

/** One thing. */
export type PreconditionFailure_Violation = {
  /** The kind of thing, such as "MISSING" for blobs that are not in the store. */
  readonly type: string;
  /** What it is about, such as "blobs/<hash>/<size>". */
  readonly subject: string;
  /** For developers. */
  readonly description: string;
};

export const PreconditionFailure_Violation: Message<PreconditionFailure_Violation> = {
  typeName: "google.rpc.PreconditionFailure.Violation",
  write(message, to) {
    if (message.type !== "") {
      to.string(10, message.type);
    }
    if (message.subject !== "") {
      to.string(18, message.subject);
    }
    if (message.description !== "") {
      to.string(26, message.description);
    }
  },
  read(from, end, before) {
    let type = before === undefined ? "" : before.type;
    let subject = before === undefined ? "" : before.subject;
    let description = before === undefined ? "" : before.description;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          type = from.string();
          break;
        }
        case 18: {
          subject = from.string();
          break;
        }
        case 26: {
          description = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { type, subject, description };
  },
};

/** What is wrong with the request. */
export type BadRequest = {
  /** All of them. */
  readonly fieldViolations: readonly BadRequest_FieldViolation[];
};

export const BadRequest: Message<BadRequest> = {
  typeName: "google.rpc.BadRequest",
  write(message, to) {
    for (const one of message.fieldViolations) {
      const start = to.open(10);
      BadRequest_FieldViolation.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const fieldViolations: BadRequest_FieldViolation[] = before === undefined ? [] : (before.fieldViolations as BadRequest_FieldViolation[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          fieldViolations.push(BadRequest_FieldViolation.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { fieldViolations };
  },
};

/** One field. */
export type BadRequest_FieldViolation = {
  /** Its path: names joined by dots, indices in brackets. */
  readonly field: string;
  /** What is wrong with it. */
  readonly description: string;
};

export const BadRequest_FieldViolation: Message<BadRequest_FieldViolation> = {
  typeName: "google.rpc.BadRequest.FieldViolation",
  write(message, to) {
    if (message.field !== "") {
      to.string(10, message.field);
    }
    if (message.description !== "") {
      to.string(18, message.description);
    }
  },
  read(from, end, before) {
    let field = before === undefined ? "" : before.field;
    let description = before === undefined ? "" : before.description;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          field = from.string();
          break;
        }
        case 18: {
          description = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { field, description };
  },
};
