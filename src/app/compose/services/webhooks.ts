/** Webhooks on a node: the deliverer, what the API needs of it, and its metrics. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { Door } from "#door/door.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Feed } from "#feed/feed.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { Records } from "#records/watch.ts";
import { shardOf } from "#shard/client/client.ts";
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
    render: (format, item) => rendered(doors, format, item),
    post,
    log,
    observe: (outcome) => observed?.(outcome),
  });
  const formats = doors.filter(({ webhook }) => webhook).map((door) => door.name);
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

function rendered(doors: readonly Door[], format: string, item: FeedItem): readonly Rendered[] {
  if (format !== "millrace") return doors.find(({ name }) => name === format)?.webhook?.(item) ?? [];
  const event = `${item.kind}.${item.change}`;
  return [{ event, body: { event, item: shown(item) } }];
}
