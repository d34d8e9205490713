/** Serves /v1/schedules. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#access/caller.ts";
import {
  listSchedules,
  pauseSchedule,
  removeSchedule,
  resumeSchedule,
  setSchedule,
  showSchedule,
} from "#api/schedules.ts";
import type { Clock } from "#base/clock.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Typed } from "#records/typed.ts";
import { cadenceOf } from "#schedules/cron.ts";
import type { Schedule, Schedules, Wanted } from "#schedules/schedule.ts";
import { scheduledOrder } from "#app/work/scheduled-order.ts";
import { judgeOrder, type SubmitPorts } from "./jobs/submit.ts";

export type SchedulesPorts = Omit<SubmitPorts, "work"> & {
  readonly schedules: Schedules;
  readonly clock: Pick<Clock, "wallMs">;
};

const nextShown = 5;

export function schedulesRoutes({ schedules, clock, ...rest }: SchedulesPorts): readonly Route[] {
  const change = async (tenant: string, name: string, to: (was: Schedule) => Schedule) => {
    const changed = await schedules.update(tenant, name, to);
    if (!changed) throw unknown();
    return { body: shown(changed, clock.wallMs(), nextShown) };
  };
  return [
    route(setSchedule, async ({ tenant, params: { name }, body, caller }) => {
      check(rest, { tenant, name, wanted: body, caller });
      const value = fresh(body, caller, clock.wallMs());
      const { created, record } = await schedules.create(tenant, name, value);
      const made = created ? record : await schedules.update(tenant, name, ({ paused }) => ({ ...value, paused }));
      return { body: shown(made ?? record, clock.wallMs(), nextShown) };
    }),
    route(listSchedules, async ({ tenant, query: { limit, cursor, prefix } }) => {
      const page = await schedules.list({ tenant, limit, cursor, prefix });
      const items = page.records.map((record) => shown(record, clock.wallMs(), nextShown));
      return { body: { items, ...(page.cursor !== undefined && { next: page.cursor }) } };
    }),
    route(showSchedule, async ({ tenant, params: { name }, query: { next } }) => {
      const found = await schedules.read(tenant, name);
      if (!found) throw unknown();
      return { body: shown(found, clock.wallMs(), next) };
    }),
    route(removeSchedule, async ({ tenant, params: { name } }) => {
      if (!(await schedules.remove(tenant, name))) throw unknown();
      return undefined;
    }),
    route(pauseSchedule, ({ tenant, params: { name } }) => change(tenant, name, (was) => ({ ...was, paused: true }))),
    route(resumeSchedule, ({ tenant, params: { name } }) =>
      change(tenant, name, (was) => ({ ...was, paused: false, settledMs: Math.max(was.settledMs, clock.wallMs()) })),
    ),
  ];
}

const unknown = (): Problem => new Problem(404, "name: there is no such schedule; list them with GET /v1/schedules");

/** What it will submit is judged now, by what its maker may submit. */
function check(
  { bounds, kinds, doors }: Omit<SubmitPorts, "work">,
  { tenant, name, wanted, caller }: { tenant: string; name: string; wanted: Wanted; caller: Caller },
): void {
  if ((wanted.command === undefined) === (wanted.document === undefined))
    throw new Problem(400, "body: send a command or a document, one of them");
  cadenceOf(wanted.cron, wanted.zone);
  judgeOrder(scheduledOrder({ tenant, name, value: wanted }, "schedule", doors), caller, bounds, kinds);
}

/** A new id for each change: no instant of the old one is taken for one of the new. */
const fresh = (wanted: Wanted, { principal }: Caller, nowMs: number): Schedule => ({
  ...wanted,
  id: randomUUID(),
  paused: false,
  by: principal.name,
  settledMs: nowMs,
});

function shown({ name, value }: Typed<Schedule>, nowMs: number, count: number) {
  const { id: _id, settledMs, starting: _starting, last, trouble, ...rest } = value;
  const at = (ms: number): string => new Date(ms).toISOString();
  const next: string[] = [];
  const cadence = cadenceOf(value.cron, value.zone);
  for (
    let ms = value.paused ? undefined : cadence.after(Math.max(settledMs, nowMs));
    ms !== undefined;
    ms = cadence.after(ms)
  ) {
    if (next.length === count) break;
    next.push(at(ms));
  }
  return {
    name,
    ...rest,
    next,
    ...(last && { last: { at: at(last.atMs), job: last.job } }),
    ...(trouble && { trouble: { at: at(trouble.atMs), why: trouble.why } }),
  };
}
