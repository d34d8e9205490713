/** For tests: nodes with their feeds, over the rig of the shard's own tests. */
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { deskDefaults, FeedDesk, type DeskSettings } from "#feed/desk.ts";
import { Feed, type FeedSettings } from "#feed/feed.ts";
import type { FeedReader } from "#feed/reader.ts";
import type { Grant } from "#kernel/model/model.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { NodeOptions } from "#shard/node.ts";
import { commit, reserve, Rig, submit, type TestNode } from "#shard/testing/host.ts";

/** Snapshots and archive come early, and jobs leave memory soon. */
export const soon: Partial<NodeOptions> = {
  snapshots: { logBytesMin: 1_500, stateShare: 0, chunkSize: 500 },
  archiver: { segmentBytes: 1_500 },
  projector: { endedKeepMs: 500 },
};

export type FedNode = TestNode & { readonly feed: Feed; readonly desk: FeedDesk };

export type FedOptions = Partial<NodeOptions> & {
  readonly desk?: Partial<DeskSettings>;
  readonly feed?: Partial<FeedSettings>;
};

export class FeedRig extends Rig {
  readonly desks = new Map<string, FeedDesk>();

  async fed(id = "a", { desk: deskSettings, feed: settings = {}, ...options }: FedOptions = {}): Promise<FedNode> {
    const desk = new FeedDesk(this.clock, { ...deskDefaults, ...deskSettings });
    const made = await this.node(id, { ...soon, ...options, observers: [desk] });
    const journal = this.store.connect();
    this.desks.set(`mem://${id}`, desk);
    const feed = new Feed({
      clock: this.clock,
      node: made.node,
      desk,
      journal,
      blobs: this.blobs,
      limits: () => defaultLimits,
      ask: (address, question, signal) => {
        const at = this.desks.get(address);
        if (!at) return Promise.reject(new Fault("unavailable", "ask", { address }));
        return at.ask(JSON.parse(JSON.stringify(question)) as typeof question, signal);
      },
      report: (doing, error) => this.reports.push(`${id}: ${doing}: ${String(error)}`),
      settings,
    });
    return Object.assign(made, { feed, desk });
  }

  /** Lets the promise settle: time passes as it needs it. */
  async through<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    void promise.then(
      () => (isDone = true),
      () => (isDone = true),
    );
    for (let turns = 0; !isDone; turns += 1) {
      if (turns > 2_000) throw new Error("it never settles");
      await this.clock.advance(1);
    }
    return await promise;
  }

  kill({ node }: FedNode, id: string): void {
    node.kill();
    this.network.delete(`mem://${id}`);
    this.desks.delete(`mem://${id}`);
  }

  /** Everything that the reader gets until nothing has come for a while. */
  async drain(reader: FeedReader, limit = 100, quietMs = 1_000): Promise<FeedItem[]> {
    const { signal } = new AbortController();
    const all: FeedItem[] = [];
    for (let quiet = 0; quiet <= quietMs;) {
      const items = await this.through(reader.take(limit, signal));
      all.push(...items);
      quiet = items.length > 0 ? 0 : quiet + 50;
      if (items.length === 0) await this.clock.advance(50);
    }
    return all;
  }
}

let serial = 0;

/** One job of two tasks that succeed, one of which reports a step. */
export async function workOff(node: TestNode, given: Parameters<typeof submit>[0] = {}): Promise<void> {
  await node.reply(submit({ tasks: 2, ...given }));
  const executor = `e${(serial += 1)}`;
  const { grants } = await node.reply<{ grants: readonly Grant[] }>(reserve({ executor, count: 2, nonce: executor }));
  const [first, second] = grants.map((grant) => must(grant, "grant"));
  const { task, token } = must(first, "grant");
  await node.reply({ kind: "report", executor, task, token, steps: [{ step: 1, name: "one", status: "started" }] });
  await node.reply(commit(must(first, "grant"), { executor }));
  await node.reply(commit(must(second, "grant"), { executor }));
}
