/** The event feed as lines: one for each event. */
import { listEvents, watchEvents, type EventItem } from "#api/events.ts";
import type { ExitCode, ServerFlagValues, World } from "#door/command.ts";
import { apiOf, untilInterrupted } from "#cli/api.ts";
import { followed } from "#cli/job/follow.ts";

export type EventsAsked = {
  readonly filters: {
    readonly kind?: EventItem["kind"][];
    readonly door?: string[];
    readonly tag?: string[];
    readonly job?: string | undefined;
  };
  readonly start: { readonly from?: "now" | "oldest" | undefined; readonly cursor?: string };
  readonly limit: number;
  readonly json: boolean;
  readonly tenant: string | undefined;
};

export async function showEvents(
  values: ServerFlagValues,
  { filters, start, limit, json, tenant }: EventsAsked,
  isFollowed: boolean,
  world: World,
): Promise<ExitCode> {
  const show = (item: EventItem): void => world.out(json ? JSON.stringify(item) : eventLine(item));
  const whose = tenant !== undefined && { tenant };
  if (!isFollowed) {
    const query = { ...filters, ...start, limit };
    const { items, next } = await apiOf(values, world.env, "read events")(listEvents, { query, ...whose });
    for (const item of items) show(item);
    if (json) world.out(JSON.stringify({ kind: "more", cursor: next }));
    else world.note(items.length === 0 ? `no events; later ones: ${more(next)}` : `more: ${more(next)}`);
    return 0;
  }
  let cursor: string | undefined;
  const open = async (lastEventId: string | undefined, signal: AbortSignal) => {
    const api = apiOf(values, world.env, "follow events");
    cursor = lastEventId ?? cursor;
    const resume = cursor === undefined ? start : { cursor };
    return await api(watchEvents, { query: { ...filters, ...resume }, signal, ...whose });
  };
  const take = (data: EventItem | { readonly cursor: string; readonly reason?: string | undefined }): void => {
    if ("id" in data) return show(data);
    ({ cursor } = data);
    if (data.reason !== undefined) world.note(`events: ${data.reason}`);
  };
  const isComplete = async (): Promise<boolean> => false;
  const waits = (): void => world.note("no node answers; waiting for one to come back");
  return await untilInterrupted<ExitCode>(
    async (signal) => {
      await followed(open, { show: take, isComplete, signal, waits });
      return 0;
    },
    () => 0,
    world,
  );
}

const more = (cursor: string): string => `millrace events --from ${cursor}`;

export function eventLine({ at, kind, change, job, phase, name, stage, task, step, reason }: EventItem): string {
  const what = step
    ? `${stage?.name}/${task?.key} step ${step.name}`
    : task
      ? `${stage?.name}/${task.key}`
      : (stage?.name ?? name);
  const why = reason === undefined ? "" : ` (${reason.split("\n")[0]})`;
  return `${at} ${job} ${kind} ${change} ${phase} ${what}${why}`;
}
