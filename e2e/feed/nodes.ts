/** For tests: real nodes that can be killed, a reader of the event feed, and a receiver of webhooks. */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { EventItem } from "#api/events.ts";
import { readEvents } from "#http/live/sse.ts";
import { endChild } from "#testing/end-child.ts";
import { until } from "#testing/until.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

export class NodeProcess {
  readonly data: string;
  readonly #set: readonly string[];
  #child: ChildProcess | undefined;
  #text = "";

  constructor(data: string, set: readonly string[]) {
    this.data = data;
    this.#set = set;
  }

  async start(): Promise<void> {
    this.#text = "";
    const env = { ...process.env, MILLRACE_DATA: this.data };
    const args = [main, "up", ...this.#set.flatMap((each) => ["--set", each])];
    const child = (this.#child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] }));
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.#text += chunk.toString()));
    await until("the node is up", () => this.#text.includes("Ctrl-C stops it"), { limitMs: 180_000 }).catch(
      (error: unknown) => {
        throw new Error(`the node does not start: ${this.#text}`, { cause: error });
      },
    );
  }

  kill = (): Promise<void> => endChild(this.#child, "SIGKILL");

  get url(): string {
    const address = /edge +(\S+)/.exec(this.#text)?.[1];
    if (address === undefined) throw new Error("the node has no address yet");
    return `http://${address}`;
  }

  get headers(): { readonly authorization: string } {
    return { authorization: `Bearer ${readFileSync(join(this.data, "operator.token"), "utf8").trim()}` };
  }
}

/** Follows the feed through lost connections, as a browser's EventSource does. */
export class FeedFollower {
  readonly items: EventItem[] = [];
  connections = 0;
  #lastEventId: string | undefined;
  readonly #node: () => NodeProcess;
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;

  constructor(node: () => NodeProcess) {
    this.#node = node;
    this.#done = this.#follow();
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#done;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.#connect(signal).catch(() => undefined);
      const pause = Promise.withResolvers<void>();
      setTimeout(pause.resolve, 50); // a client's pause between two tries
      await pause.promise;
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { url, headers } = this.#node();
    const resume = this.#lastEventId === undefined ? {} : { "last-event-id": this.#lastEventId };
    const accept = { accept: "text/event-stream" };
    const response = await fetch(`${url}/v1/events?from=oldest`, {
      headers: { ...headers, ...resume, ...accept },
      signal,
    });
    if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`);
    this.connections += 1;
    for await (const { id, event, data } of readEvents(response.body)) {
      this.#lastEventId = id ?? this.#lastEventId;
      if (event !== "cursor" && event !== "shed") this.items.push(JSON.parse(data) as EventItem);
    }
  }
}

export type Pages = { readonly items: readonly EventItem[]; readonly next: string };

/** Every item that there is behind a cursor, page by page, and the cursor behind them; left out, from the first. */
export async function everything({ url, headers }: NodeProcess, after?: string): Promise<Pages> {
  const items: EventItem[] = [];
  for (let cursor = after; ;) {
    const query = cursor === undefined ? "from=oldest" : `cursor=${cursor}`;
    const response = await fetch(`${url}/v1/events?limit=7&${query}`, { headers });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const page = (await response.json()) as { readonly items: readonly EventItem[]; readonly next: string };
    if (page.items.length === 0) return { items, next: page.next };
    items.push(...page.items);
    cursor = page.next;
  }
}

export const shardOf = ({ id }: EventItem): string => id.slice(0, id.indexOf("-"));

/** The ids of each shard, each once, in the order in which they first came. */
export function byShard(items: readonly EventItem[]): ReadonlyMap<string, readonly string[]> {
  const shards = new Map<string, Set<string>>();
  for (const item of items) {
    const ids = shards.get(shardOf(item)) ?? new Set();
    shards.set(shardOf(item), ids.add(item.id));
  }
  return new Map([...shards].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([shard, ids]) => [shard, [...ids]]));
}

export type Received = {
  readonly id: string;
  readonly signature: string;
  readonly body: string;
  readonly status: number;
};

export async function openReceiver() {
  const received: Received[] = [];
  const answers = { status: 200 };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { "webhook-id": id, "x-hub-signature-256": signature } = request.headers;
      const { status } = answers;
      received.push({ id: String(id), signature: String(signature), body: Buffer.concat(parts).toString(), status });
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { received, answers, url: `http://127.0.0.1:${port}/hook`, close: () => server.close() };
}
