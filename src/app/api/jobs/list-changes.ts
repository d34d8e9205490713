/** When a list of jobs may have changed: what the event feed says of the tenant's and the door's jobs. */
import type { Feed } from "#feed/feed.ts";

export type ListedJobs = { readonly tenant?: string | undefined; readonly door?: string | undefined };

/** What is taken at once is one change, however much it is. */
const togetherMax = 1_000;
const waitMs = 60_000;

export async function* listChanges(
  feed: Pick<Feed, "open">,
  { tenant, door }: ListedJobs,
  signal: AbortSignal,
): AsyncGenerator<void> {
  using reader = await feed.open({ tenant, ...(door !== undefined && { doors: [door] }) }, "now", { isOurs: true });
  while (!signal.aborted) {
    const items = await reader.take(togetherMax, signal);
    if (items.length > 0) yield;
    else await reader.news(waitMs, signal);
  }
}
