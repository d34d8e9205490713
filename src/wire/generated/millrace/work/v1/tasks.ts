// Generated from proto/millrace/work/v1/tasks.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";

/** A question about a task. */
export type AskRequest = {
  /** The executor that holds the claim, as in Reserve. */
  readonly executor: string;
  /** The task, such as t0-1. */
  readonly task: string;
  /** The claim's token. */
  readonly token: number;
  /** What is asked, such as access. */
  readonly question: string;
  /** More about the question: a JSON text, or nothing. */
  readonly body: string;
};

export const AskRequest: Message<AskRequest> = {
  typeName: "millrace.work.v1.AskRequest",
  write(message, to) {
    if (message.executor !== "") {
      to.string(10, message.executor);
    }
    if (message.task !== "") {
      to.string(18, message.task);
    }
    if (message.token !== 0) {
      to.int64(24, message.token);
    }
    if (message.question !== "") {
      to.string(34, message.question);
    }
    if (message.body !== "") {
      to.string(42, message.body);
    }
  },
  read(from, end, before) {
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? "" : before.task;
    let token = before === undefined ? 0 : before.token;
    let question = before === undefined ? "" : before.question;
    let body = before === undefined ? "" : before.body;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          executor = from.string();
          break;
        }
        case 18: {
          task = from.string();
          break;
        }
        case 24: {
          token = from.int64();
          break;
        }
        case 34: {
          question = from.string();
          break;
        }
        case 42: {
          body = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { executor, task, token, question, body };
  },
};

/** The answer. */
export type AskResponse = {
  /** A JSON text. */
  readonly body: string;
};

export const AskResponse: Message<AskResponse> = {
  typeName: "millrace.work.v1.AskResponse",
  write(message, to) {
    if (message.body !== "") {
      to.string(10, message.body);
    }
  },
  read(from, end, before) {
    let body = before === undefined ? "" : before.body;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          body = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { body };
  },
};

/** For programs that run work elsewhere. */
export const Tasks = {
  typeName: "millrace.work.v1.Tasks",
  methods: {
    /**
     * Asks a node about a task that the executor holds. "access": a token for what the task runs, as
     * {"token": "...", "untilMs": 0}, which ends with the claim. Other questions are the doors'.
     */
    ask: {
      name: "Ask",
      path: "/millrace.work.v1.Tasks/Ask",
      request: AskRequest,
      response: AskResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
