/**
 * Server-sent events (the text/event-stream format). An event's id is what a client sends back as Last-Event-ID after
 * a lost connection, so a feed that can resume gives every event one.
 */

export type ServerEvent<T = unknown> = {
  readonly id?: string;
  readonly event?: string;
  readonly data: T;
  /** The data as JSON, where it is known: what many readers get is written once. */
  readonly text?: string;
};

export const eventsType = "text/event-stream";

export type HeartbeatClock = { after(ms: number, run: () => void): () => void };

export type EventStreamOptions = {
  readonly clock: HeartbeatClock;
  /** After so long without an event a comment is sent: proxies keep the connection, and a dead one is noticed. */
  readonly heartbeatMs: number;
};

const encoder = new TextEncoder();
const heartbeat = encoder.encode(":\n\n");

/**
 * The events as bytes, several together where the source gives several. It asks for the next ones only when the
 * connection takes more, so what is held for a slow reader is what the source gave last; how far behind it may fall is
 * the feed's to decide.
 */
export async function* eventBytes(
  events: AsyncIterable<ServerEvent | readonly ServerEvent[]>,
  { clock, heartbeatMs }: EventStreamOptions,
): AsyncGenerator<Uint8Array> {
  const source = events[Symbol.asyncIterator]();
  try {
    yield heartbeat; // the headers leave with it, so that the client knows that it is connected
    let next = source.next();
    for (;;) {
      const quiet = Promise.withResolvers<"quiet">();
      const cancel = clock.after(heartbeatMs, () => quiet.resolve("quiet"));
      const got = await Promise.race([next, quiet.promise]).finally(cancel);
      if (got === "quiet") {
        yield heartbeat;
        continue;
      }
      if (got.done === true) return;
      yield encoder.encode("data" in got.value ? eventText(got.value) : got.value.map(eventText).join(""));
      next = source.next();
    }
  } finally {
    await source.return?.();
  }
}

/** Ids and names with line breaks would let one event pretend to be two. */
function eventText({ id, event, data, text }: ServerEvent): string {
  if ((id !== undefined && /[\r\n\0]/.test(id)) || (event !== undefined && /[\r\n]/.test(event)))
    throw new Error("an event's id and name are one line");
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${text ?? JSON.stringify(data)}\n\n`;
}

export const encodeEvent = (event: ServerEvent): Uint8Array => encoder.encode(eventText(event));

/** What a client has seen already. The query parameter serves clients that cannot set a header on their first try. */
export const lastEventId = (headers: Headers, url: URL): string | undefined =>
  headers.get("last-event-id") ?? url.searchParams.get("lastEventId") ?? undefined;

/** Reads a stream of events; the client's counterpart. Throws on a line longer than `lineLengthMax`. */
export async function* readEvents(
  parts: AsyncIterable<Uint8Array>,
  lineLengthMax = 4 * 1024 * 1024,
): AsyncGenerator<{ readonly id: string | undefined; readonly event: string; readonly data: string }> {
  const decoder = new TextDecoder();
  let text = "";
  let id: string | undefined;
  let event = "message";
  let data: string[] = [];
  for await (const part of parts) {
    text += decoder.decode(part, { stream: true });
    for (let end = text.search(/\r\n|\n|\r(?!$)/); end >= 0; end = text.search(/\r\n|\n|\r(?!$)/)) {
      const line = text.slice(0, end);
      text = text.slice(end + (text.startsWith("\r\n", end) ? 2 : 1));
      if (line === "") {
        if (data.length > 0) yield { id, event, data: data.join("\n") };
        [event, data] = ["message", []];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") data.push(value);
      else if (field === "event") event = value;
      else if (field === "id" && !value.includes("\0")) id = value;
    }
    if (text.length > lineLengthMax) throw new Error(`an event line is longer than ${lineLengthMax} characters`);
  }
}
