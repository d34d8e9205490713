/** Which items a reader wants. Tenants see only theirs, whatever they ask for. */
import type { FeedItem, FeedKind } from "#kernel/read/feed.ts";

export type FeedFilter = {
  /** Left out: of all tenants, for operators. */
  readonly tenant?: string | undefined;
  readonly doors?: readonly string[] | undefined;
  readonly kinds?: readonly FeedKind[] | undefined;
  /** All of these. */
  readonly tags?: readonly { readonly name: string; readonly value: string }[] | undefined;
  readonly job?: string | undefined;
};

export function wants(filter: FeedFilter, item: FeedItem): boolean {
  const { tenant, doors, kinds, tags, job } = filter;
  if (tenant !== undefined && item.tenant !== tenant) return false;
  if (kinds && kinds.length > 0 && !kinds.includes(item.kind)) return false;
  if (doors && doors.length > 0 && !doors.includes(item.door)) return false;
  if (job !== undefined && item.job !== job) return false;
  return tags === undefined || tags.every(({ name, value }) => item.tags?.[name] === value);
}
