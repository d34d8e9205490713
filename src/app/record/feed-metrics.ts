/** How far the readers of the event feed are behind, at /metrics. */
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Feed } from "#feed/feed.ts";

export function feedMetrics(registry: MetricsRegistry, feed: Pick<Feed, "status">): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with();
  const counter = (name: string, help: string) => registry.counter({ name, help }).with();
  const readers = gauge("millrace_feed_readers", "Open readers of the event feed on this node, webhooks included.");
  const lag = gauge(
    "millrace_feed_lag_batches",
    "Batches of the log that the reader of the event feed on this node that is furthest behind has not seen.",
  );
  const lagSeconds = gauge(
    "millrace_feed_lag_seconds",
    "For how long the oldest event has waited for the reader of the feed on this node that is furthest behind.",
  );
  const silent = gauge(
    "millrace_feed_silent_seconds",
    "For how long the owner of some shard has not answered the event feed of this node; 0 if all answer.",
  );
  const delivered = counter(
    "millrace_feed_items_total",
    "Items of the event feed that readers on this node were given.",
  );
  const replays = counter(
    "millrace_feed_replays_total",
    "Times that this node read the log or the archive for readers of the event feed that were behind.",
  );
  const replayed = counter(
    "millrace_feed_replayed_batches_total",
    "Batches of the log that this node applied again for readers of the event feed that were behind.",
  );
  const shed = counter("millrace_feed_shed_total", "Readers of the event feed that were too slow and sent away.");
  let before = { delivered: 0, replays: 0, replayedBatches: 0, shed: 0 };
  registry.beforeText(() => {
    const now = feed.status();
    readers.set(now.readers);
    lag.set(now.lagBatches);
    lagSeconds.set(now.lagMs / 1_000);
    silent.set(now.silentMs / 1_000);
    delivered.add(now.delivered - before.delivered);
    replays.add(now.replays - before.replays);
    replayed.add(now.replayedBatches - before.replayedBatches);
    shed.add(now.shed - before.shed);
    before = now;
  });
}
