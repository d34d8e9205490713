/**
 * Freeze windows: times of the week in which no wave of a release begins. Pure: the time comes in. Rollbacks are never
 * frozen.
 */
export type Freeze = {
  /** Minutes since Monday 00:00, in the zone. */
  readonly from: number;
  readonly to: number;
  readonly zone: string;
  readonly text: string;
};

const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
const weekMinutes = 7 * 24 * 60;
const pattern = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\d\d):(\d\d)\/(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\d\d):(\d\d) (\S{1,60})$/;

/** `Fri 16:00/Mon 08:00 Europe/Berlin`; undefined: it is not written like this, or there is no such zone. */
export function parseFreeze(text: string): Freeze | undefined {
  const match = pattern.exec(text);
  if (!match) return undefined;
  const [, fromDay = "", fromHour = "", fromMinute = "", toDay = "", toHour = "", toMinute = "", zone = ""] = match;
  const from = minuteOf(fromDay, fromHour, fromMinute);
  const to = minuteOf(toDay, toHour, toMinute);
  return from === undefined || to === undefined || from === to || !isZone(zone) ? undefined : { from, to, zone, text };
}

/** The window that holds at this time. */
export function frozenBy(windows: readonly string[], atMs: number): Freeze | undefined {
  return windows
    .map((text) => parseFreeze(text))
    .find((window) => window !== undefined && isWithin(window, weekMinute(atMs, window.zone)));
}

const isWithin = ({ from, to }: Freeze, at: number): boolean =>
  from < to ? at >= from && at < to : at >= from || at < to;

/** Minutes since Monday 00:00 as clocks in the zone show them, so that a change to summer time moves nothing. */
function weekMinute(atMs: number, zone: string): number {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
  return minuteOf(parts["weekday"] ?? "", parts["hour"] ?? "", parts["minute"] ?? "") ?? 0;
}

function minuteOf(day: string, hour: string, minute: string): number | undefined {
  const index = days.findIndex((each) => each === day);
  const minutes = Number(hour) * 60 + Number(minute);
  if (index < 0 || Number(hour) > 23 || Number(minute) > 59) return undefined;
  return (index * 24 * 60 + minutes) % weekMinutes;
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en-GB", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
