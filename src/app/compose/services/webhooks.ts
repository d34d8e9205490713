/** Webhooks on a node: the deliverer, what the API needs of it, and its metrics. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { Door, WebhookFormat } from "#door/door.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Feed } from "#feed/feed.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { Records } from "#records/watch.ts";
import { shardOf, type WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { isFault } from "#base/fault.ts";
import type { Node } from "#shard/node.ts";
import type { Vault } from "#vault/vault.ts";
import { WebhookDeliverer, type DeliveryOutcome, type Rendered } from "#webhooks/deliverer.ts";
import { postBy } from "#webhooks/post.ts";
import { webhooksIn } from "#webhooks/webhook.ts";
import { shown } from "#app/api/events.ts";
import type { WebhooksPorts } from "#app/api/webhooks.ts";
import type { Config } from "#app/config/config.ts";

export type RunningWebhooks = {
  readonly api: WebhooksPorts;
  readonly deliverer: WebhookDeliverer;
  readonly show: (registry: MetricsRegistry) => void;
};

export function startWebhooks(parts: {
  readonly config: Config;
  readonly name: string;
  readonly records: Records;
  readonly vault: Vault;
  readonly feed: Feed;
  readonly node: Pick<Node, "keeper" | "cluster">;
  readonly client: Pick<WorkClient, "job" | "task">;
  readonly clock: Clock;
  readonly random: Random;
  readonly doors: readonly Door[];
  readonly log: (line: string) => void;
}): RunningWebhooks {
  const { config, name, vault, feed, node, clock, doors, log } = parts;
  const { http, privateAddresses, timeout } = config.webhooks;
  const rules = { http, privateAddresses, timeoutMs: timeout };
  const records = webhooksIn(parts.records);
  const post = postBy(rules);
  let observed: ((outcome: DeliveryOutcome) => void) | undefined;
  const deliverer = new WebhookDeliverer({
    records,
    vault,
    feed,
    clock,
    random: parts.random.fork("webhooks"),
    node: name,
    owns: (key) => node.keeper.held.has(shardOf(`webhook ${key}`, node.cluster.shards)),
    render: async (format, item) => await rendered(doors, format, item, parts.client),
    sending: (format) => formatOf(doors, format) ?? {},
    post,
    log,
    observe: (outcome) => observed?.(outcome),
  });
  const formats = new Map(doors.flatMap((door) => Object.entries(door.webhooks ?? {})));
  const show = (registry: MetricsRegistry): void => {
    const attempts = registry.counter({
      name: "millrace_webhook_deliveries_total",
      help: "Deliveries of webhooks by this node, by outcome: delivered, failed (one attempt), dead (given up).",
      labels: ["outcome"],
    });
    observed = (outcome) => attempts.with(outcome).add(1);
  };
  return { api: { records, vault, feed, clock, post, rules, formats }, deliverer, show };
}

async function rendered(
  doors: readonly Door[],
  format: string,
  item: FeedItem,
  client: Parameters<typeof resultOf>[1],
): Promise<readonly Rendered[]> {
  if (format !== "millrace") {
    const found = formatOf(doors, format);
    return found?.render(item, found.asksFor?.(item) ? await resultOf(item, client) : undefined) ?? [];
  }
  const event = `${item.kind}.${item.change}`;
  return [{ event, body: { event, item: shown(item) } }];
}

/** From the shard; from the history, once the job has left its memory; undefined when that has forgotten it, too. */
async function resultOf(
  { job, task, stage }: FeedItem,
  client: Pick<WorkClient, "job" | "task">,
): Promise<string | undefined> {
  const gone = (error: unknown): undefined => {
    if (!isRejected(error) && !isFault(error, "not-found")) throw error;
  };
  const live = task && (await client.task(task.id).catch(gone));
  if (live) return live.result?.payload;
  const ended = await client.job(job).catch(gone);
  return ended?.view.tasks.find((one) => one.key === task?.key && one.stage === stage?.index)?.result?.payload;
}

const formatOf = (doors: readonly Door[], format: string): WebhookFormat | undefined =>
  doors.map(({ webhooks }) => webhooks?.[format]).find((one) => one !== undefined);
