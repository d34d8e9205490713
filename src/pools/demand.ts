/**
 * Which pool works off which of the waiting work. Pure. Pools come in the order of the configuration: what finds no
 * room below the ceiling of the first that fits goes to the next one.
 */
import type { PoolSettings, TemplateSettings } from "./pool-config.ts";
import { workerPrefix, type Queue, type Waiting } from "./queue.ts";

export type TemplateDemand = { readonly waiting: number; readonly tasks: readonly string[] };

export type Demand = {
  /** Tasks that wait and can run here, by template. */
  readonly templates: ReadonlyMap<string, TemplateDemand>;
  readonly waiting: number;
  readonly running: number;
  readonly oldestForMs: number;
};

/** What machines of a template offer, exactly as their registration says. */
export const offersOf = ({ name }: Pick<PoolSettings, "name">, template: TemplateSettings): readonly string[] => [
  ...new Set([
    "os=linux",
    `arch=${"arch" in template ? template.arch : "x64"}`,
    `pool=${name}`,
    ...grantedLabels(template),
  ]),
];

/** What its token grants besides pool, system and processor. */
export const grantedLabels = ({ runsOn, labels }: Pick<TemplateSettings, "runsOn" | "labels">): readonly string[] => [
  ...new Set([
    "door=ci",
    "isolation=sandbox",
    ...["self-hosted", ...runsOn].map((label) => `runner=${label}`),
    ...labels,
  ]),
];

const tasksMax = 100;

const isOf = ({ tenant }: PoolSettings, work: Pick<Waiting, "tenant">): boolean =>
  tenant === undefined || tenant === work.tenant;

/** The first pool that runs such work, whatever room it has. */
export const poolOf = (
  pools: readonly PoolSettings[],
  work: Pick<Waiting, "tenant" | "requires">,
): PoolSettings | undefined =>
  pools.find(
    (pool) =>
      isOf(pool, work) &&
      pool.templates.some((template) => {
        const offers = new Set(offersOf(pool, template));
        return work.requires.every((label) => offers.has(label));
      }),
  );

export function demandOf(pools: readonly PoolSettings[], { waiting, workers }: Queue): ReadonlyMap<string, Demand> {
  const left = waiting.map(({ count }) => count);
  return new Map(
    pools.map((pool) => {
      const running = workers.filter(
        ({ name, holds }) => holds.length > 0 && name.startsWith(`${workerPrefix}${pool.name}.`),
      ).length;
      let room = Math.max(0, pool.max - running);
      let oldestForMs = 0;
      const templates = new Map<string, TemplateDemand>();
      for (const template of pool.templates) {
        const offers = new Set(offersOf(pool, template));
        const fits = (work: Waiting): boolean => isOf(pool, work) && work.requires.every((label) => offers.has(label));
        const tasks: string[] = [];
        let count = 0;
        for (const [at, work] of waiting.entries()) {
          const rest = left[at] ?? 0;
          if (rest === 0 || !fits(work)) continue;
          const taken = Math.min(rest, room);
          oldestForMs = Math.max(oldestForMs, work.oldestForMs);
          room -= taken;
          left[at] = rest - taken;
          count += taken;
          if (tasks.length < tasksMax) tasks.push(...work.tasks.slice(0, Math.min(taken, tasksMax - tasks.length)));
        }
        templates.set(template.name, { waiting: count, tasks });
      }
      const total = templates.values().reduce((sum, one) => sum + one.waiting, 0);
      return [pool.name, { templates, waiting: total, running, oldestForMs }];
    }),
  );
}
