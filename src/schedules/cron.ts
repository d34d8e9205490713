/**
 * Instants of a cron expression: five fields as POSIX has them (with steps and names), in an IANA time zone. A time of
 * day that a clock change leaves out counts at the end of the gap; one that comes twice counts once, unless the hour
 * is a wildcard.
 */
import { Cron } from "croner";
import { Fault } from "#base/fault.ts";

const fieldPattern = /^[0-9*,/-]+$/;
const namePattern = /\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)\b/gi;

export type Cadence = {
  /** The first instant after this one; undefined: there is none. */
  after(ms: number): number | undefined;
  /** An instant so many instants before this time, or about as many. */
  back(ms: number, count: number): number | undefined;
};

export function cadenceOf(cron: string, zone: string): Cadence {
  const why = whyNot(cron);
  if (why !== undefined) throw wrong(cron, zone, why);
  try {
    const parsed = new Cron(cron, { timezone: zone, paused: true, mode: "5-part" });
    const after = (ms: number): number | undefined => parsed.nextRun(new Date(ms))?.getTime();
    if (after(0) === undefined) throw new Error("there is no such day");
    const back = (ms: number, count: number): number | undefined =>
      parsed.previousRuns(count, new Date(ms)).at(-1)?.getTime();
    return { after, back };
  } catch (error) {
    throw wrong(cron, zone, error instanceof Error ? error.message : String(error));
  }
}

const wrong = (cron: string, zone: string, why: string): Fault =>
  new Fault("invalid", "read a schedule", { cron: cron.slice(0, 100), zone: zone.slice(0, 100), why });

function whyNot(cron: string): string | undefined {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 || cron.length > 200)
    return 'write five fields: minute, hour, day of month, month, day of week, such as "30 6 * * 1-5"';
  const odd = fields.find((field) => !fieldPattern.test(field.replace(namePattern, "0")));
  return odd === undefined ? undefined : `${odd.slice(0, 20)}: only numbers, names of months and days, * , - and /`;
}
