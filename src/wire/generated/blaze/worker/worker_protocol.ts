// Generated from proto/blaze/worker/worker_protocol.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";

/** A file that a request may read. */
export type Input = {
  /** Below the folder that the tool was started in. */
  readonly path: string;
  /** Of its contents, for tools that cache files: equal bytes, equal digest. Hexadecimal digits. */
  readonly digest: Uint8Array;
};

export const Input: Message<Input> = {
  typeName: "blaze.worker.Input",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.digest.length > 0) {
      to.data(18, message.digest);
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let digest = before === undefined ? noBytes : before.digest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 18: {
          digest = from.data();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, digest };
  },
};

/** One action's worth of work. */
export type WorkRequest = {
  /** The lines of the action's flag files. */
  readonly arguments: readonly string[];
  /** All that it may read. */
  readonly inputs: readonly Input[];
  /** Zero for tools that take one request at a time. */
  readonly requestId: number;
  /** Asks for an end of the request with this number instead. */
  readonly cancel: boolean;
  /** Above zero: say more on standard error. */
  readonly verbosity: number;
  /** For tools that take several requests at a time: the folder of this one. */
  readonly sandboxDir: string;
};

export const WorkRequest: Message<WorkRequest> = {
  typeName: "blaze.worker.WorkRequest",
  write(message, to) {
    for (const one of message.arguments) {
      to.string(10, one);
    }
    for (const one of message.inputs) {
      const start = to.open(18, one.digest.length);
      Input.write(one, to);
      to.close(start, one.digest.length);
    }
    if (message.requestId !== 0) {
      to.int32(24, message.requestId);
    }
    if (message.cancel) {
      to.bool(32, message.cancel);
    }
    if (message.verbosity !== 0) {
      to.int32(40, message.verbosity);
    }
    if (message.sandboxDir !== "") {
      to.string(50, message.sandboxDir);
    }
  },
  read(from, end, before) {
    const arguments_: string[] = before === undefined ? [] : (before.arguments as string[]);
    const inputs: Input[] = before === undefined ? [] : (before.inputs as Input[]);
    let requestId = before === undefined ? 0 : before.requestId;
    let cancel = before === undefined ? false : before.cancel;
    let verbosity = before === undefined ? 0 : before.verbosity;
    let sandboxDir = before === undefined ? "" : before.sandboxDir;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          arguments_.push(from.string());
          break;
        }
        case 18: {
          const stop = from.enter();
          inputs.push(Input.read(from, stop));
          from.leave(stop);
          break;
        }
        case 24: {
          requestId = from.int32();
          break;
        }
        case 32: {
          cancel = from.bool();
          break;
        }
        case 40: {
          verbosity = from.int32();
          break;
        }
        case 50: {
          sandboxDir = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { arguments: arguments_, inputs, requestId, cancel, verbosity, sandboxDir };
  },
};

/** What became of it. */
export type WorkResponse = {
  /** As of a process. */
  readonly exitCode: number;
  /** Text to show to the user of the action. */
  readonly output: string;
  /** The request's. */
  readonly requestId: number;
  /** It was ended because that was asked for. */
  readonly wasCancelled: boolean;
};

export const WorkResponse: Message<WorkResponse> = {
  typeName: "blaze.worker.WorkResponse",
  write(message, to) {
    if (message.exitCode !== 0) {
      to.int32(8, message.exitCode);
    }
    if (message.output !== "") {
      to.string(18, message.output);
    }
    if (message.requestId !== 0) {
      to.int32(24, message.requestId);
    }
    if (message.wasCancelled) {
      to.bool(32, message.wasCancelled);
    }
  },
  read(from, end, before) {
    let exitCode = before === undefined ? 0 : before.exitCode;
    let output = before === undefined ? "" : before.output;
    let requestId = before === undefined ? 0 : before.requestId;
    let wasCancelled = before === undefined ? false : before.wasCancelled;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          exitCode = from.int32();
          break;
        }
        case 18: {
          output = from.string();
          break;
        }
        case 24: {
          requestId = from.int32();
          break;
        }
        case 32: {
          wasCancelled = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { exitCode, output, requestId, wasCancelled };
  },
};
