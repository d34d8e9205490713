/** Watches as messages of the work protocol, and back. Events are sent as the log keeps them: see ADR 0004. */
import { isFault } from "#base/fault.ts";
import type { Event } from "#kernel/model/event.ts";
import type * as wire from "#wire/generated/millrace/work/v1/queries.ts";
import type { Event as WireEvent } from "#wire/generated/millrace/work/v1/view.ts";
import { eventOf } from "#shard/codec/codec.ts";
import type { WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import { given } from "./commands.ts";
import { statusOfRejection, type Status } from "./rejections.ts";
import { readStamp } from "./replies.ts";
import { readJob, writeJob } from "./views.ts";
import { each, readPart, refuse } from "./enums.ts";

export const writeWatch = (request: WatchRequest): wire.WatchRequest => request;

export const readWatch = ({ shard, job, tenant, after }: wire.WatchRequest): WatchRequest => ({
  shard,
  job,
  ...given({ tenant }),
  ...given({ after }),
});

/** A message of the stream, or the status that ends it. */
export type Watched = { readonly ok: true; readonly message: wire.WatchResponse } | Refused;
type Refused = { readonly ok: false; readonly status: Status };

export function writeWatched({ shard }: WatchRequest, message: WatchMessage): Watched {
  switch (message.kind) {
    case "snapshot": {
      const { stamp, view } = message;
      return said({ kind: "snapshot", value: { stamp, job: writeJob(view) } });
    }
    case "events": {
      const { stamp, events } = message;
      return said({ kind: "events", value: { stamp, events: events.map(writeEvent) } });
    }
    case "heartbeat":
    case "end":
      return said({ kind: message.kind, value: message.stamp });
    case "moved":
      return said({ kind: "moved", value: { hint: message.hint } });
    case "rejected":
      return { ok: false, status: statusOfRejection(shard, message.rejection, message.stamp) };
  }
}

const said = (message: wire.WatchResponse["message"]): Watched => ({ ok: true, message: { message } });

/** A rejection ends the stream with a status: see `responseOfStatus`. */
export function readWatched({ message }: wire.WatchResponse): WatchMessage {
  switch (message?.kind) {
    case "snapshot": {
      const { stamp, job } = message.value;
      return { kind: "snapshot", stamp: readStamp(stamp), view: readPart("snapshot.job", job, readJob) };
    }
    case "events": {
      const { stamp, events } = message.value;
      return { kind: "events", stamp: readStamp(stamp), events: each("events.events", events, readEvent) };
    }
    case "heartbeat":
    case "end":
      return { kind: message.kind, stamp: readStamp(message.value) };
    case "moved":
      return { kind: "moved", hint: message.value.hint };
    default:
      return refuse("message", "must be there");
  }
}

const writeEvent = (event: Event): WireEvent => ({ kind: event.kind, json: JSON.stringify(event) });

function readEvent({ kind, json }: WireEvent): Event {
  try {
    const event = eventOf(json);
    if (event.kind === kind) return event;
  } catch (error) {
    if (!isFault(error)) throw error;
  }
  return refuse("json", "must be an event of the kind that is named beside it");
}
