/** The subscribers of `bench feed`, in a process of their own: streams of server-sent events that are counted. */
import { request, type IncomingMessage } from "node:http";
import { answering } from "#bench/load-process.ts";

export type SubscribersAsked =
  | { readonly kind: "subscribe"; readonly port: number; readonly token: string; readonly count: number }
  /** Until every subscriber has so many events, or for that long. */
  | { readonly kind: "received"; readonly each: number; readonly withinMs: number }
  | { readonly kind: "leave" };

export type SubscribersDid = {
  /** Of all subscribers, since they began. */
  readonly events: number;
  readonly bytes: number;
  /** Of the one that has least. */
  readonly least: number;
};

type Subscriber = { readonly stream: IncomingMessage; events: number; bytes: number };

const mark = Buffer.from("event: ");
let subscribers: Subscriber[] = [];

async function subscribe(port: number, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: "/v1/events?from=now", headers }, resolve).on("error", reject).end();
  });
  if (stream.statusCode !== 200) throw new Error(`the feed answers ${stream.statusCode}`);
  const subscriber: Subscriber = { stream, events: 0, bytes: 0 };
  stream.on("data", (part: Buffer) => {
    subscriber.bytes += part.length;
    // A mark that is cut in two is counted with neither part: one of thousands.
    for (let at = part.indexOf(mark); at !== -1; at = part.indexOf(mark, at + mark.length)) subscriber.events += 1;
  });
  stream.on("error", () => {});
  subscribers.push(subscriber);
}

function seen(): SubscribersDid {
  const events = subscribers.map((one) => one.events);
  const bytes = subscribers.reduce((sum, one) => sum + one.bytes, 0);
  return { events: events.reduce((sum, one) => sum + one, 0), bytes, least: Math.min(...events) };
}

async function perform(asked: SubscribersAsked): Promise<SubscribersDid> {
  if (asked.kind === "leave") {
    for (const { stream } of subscribers) stream.destroy();
    subscribers = [];
    return { events: 0, bytes: 0, least: 0 };
  }
  if (asked.kind === "subscribe") {
    for (let i = 0; i < asked.count; i += 1) await subscribe(asked.port, asked.token);
    return seen();
  }
  for (const untilMono = performance.now() + asked.withinMs; performance.now() < untilMono;) {
    if (subscribers.length === 0 || seen().least >= asked.each) break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return seen();
}

answering(perform);
