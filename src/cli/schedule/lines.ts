/** Schedules as people read them. */
import { tableLines } from "#door/table.ts";

type Shown = {
  readonly name: string;
  readonly cron: string;
  readonly zone: string;
  readonly catchUp: string;
  readonly paused: boolean;
  readonly by: string;
  readonly next: readonly string[];
  readonly command?: readonly string[] | undefined;
  readonly last?: { readonly at: string; readonly job: string } | undefined;
  readonly trouble?: { readonly at: string; readonly why: string } | undefined;
};

const nextOf = ({ paused, next }: Shown): string => (paused ? "paused" : (next[0] ?? "never"));

export const scheduleTable = (items: readonly Shown[]): readonly string[] =>
  tableLines(
    ["NAME", "CRON", "ZONE", "NEXT", "LAST JOB"],
    items.map((item) => [item.name, item.cron, item.zone, nextOf(item), item.last?.job ?? "none"]),
  );

export function scheduleLines(item: Shown): readonly string[] {
  const { name, cron, zone, catchUp, by, last, trouble, command } = item;
  return [
    `${name}: ${cron} in ${zone}, ${catchUp} of missed instants, made by ${by}`,
    ...(command ? [`runs: ${command.join(" ")}`] : []),
    `next: ${nextOf(item)}`,
    ...(last ? [`last: ${last.at}, ${last.job}`] : []),
    ...(trouble ? [`trouble: ${trouble.at}, ${trouble.why}`] : []),
  ];
}
