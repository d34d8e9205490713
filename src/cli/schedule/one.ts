/** Commands about one schedule that exists. */
import { command, serverFlags } from "#door/command.ts";

const flags = { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } } as const;

const missing = (name: string): string => `${name}: name the schedule, for example: millrace ${name} nightly`;

export const scheduleShow = command({
  name: "schedule show",
  about: "Show a schedule: when it starts jobs, the last one, and what went wrong.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace schedule show nightly"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note(missing("schedule show"));
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { showSchedule } = await import("#api/schedules.ts");
    const { scheduleLines } = await import("./lines.ts");
    const { tenant } = values;
    const of = { params: { name }, query: {}, ...(tenant !== undefined && { tenant }) };
    const shown = await apiOf(values, world.env, "show schedule")(showSchedule, of);
    for (const line of values.json ? [JSON.stringify(shown)] : scheduleLines(shown)) world.out(line);
    return 0;
  },
});

export const scheduleNext = command({
  name: "schedule next",
  about: "Print the next instants of a schedule.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...flags, count: { type: "string", value: "NUMBER", about: "so many (5), up to 100" } },
  examples: ["millrace schedule next nightly --count 10"],
  async run({ positionals: [name], values }, world) {
    const next = Number(values.count ?? 5);
    if (name === undefined || !Number.isInteger(next) || next < 1 || next > 100) {
      world.note(name === undefined ? missing("schedule next") : "schedule next: --count is a number from 1 to 100");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { showSchedule } = await import("#api/schedules.ts");
    const { tenant } = values;
    const of = { params: { name }, query: { next }, ...(tenant !== undefined && { tenant }) };
    const shown = await apiOf(values, world.env, "show schedule")(showSchedule, of);
    for (const at of shown.next) world.out(values.json ? JSON.stringify({ at }) : at);
    return 0;
  },
});

export const scheduleRemove = command({
  name: "schedule remove",
  about: "Remove a schedule; jobs that it started stay.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace schedule remove nightly"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note(missing("schedule remove"));
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { removeSchedule } = await import("#api/schedules.ts");
    const { tenant } = values;
    const of = { params: { name }, ...(tenant !== undefined && { tenant }) };
    await apiOf(values, world.env, "remove schedule")(removeSchedule, of);
    world.out(values.json ? JSON.stringify({ name, removed: true }) : `${name}: removed`);
    return 0;
  },
});

const pausing = (verb: "pause" | "resume", about: string) =>
  command({
    name: `schedule ${verb}`,
    about,
    words: "<name>",
    positionalsMax: 1,
    takesRest: false,
    flags,
    examples: [`millrace schedule ${verb} nightly`],
    async run({ positionals: [name], values }, world) {
      if (name === undefined) {
        world.note(missing(`schedule ${verb}`));
        return 2;
      }
      const { apiOf } = await import("#cli/api.ts");
      const { pauseSchedule, resumeSchedule } = await import("#api/schedules.ts");
      const { scheduleLines } = await import("./lines.ts");
      const { tenant } = values;
      const of = { params: { name }, ...(tenant !== undefined && { tenant }) };
      const api = apiOf(values, world.env, `${verb} schedule`);
      const shown = verb === "pause" ? await api(pauseSchedule, of) : await api(resumeSchedule, of);
      for (const line of values.json ? [JSON.stringify(shown)] : scheduleLines(shown)) world.out(line);
      return 0;
    },
  });

export const schedulePause = pausing("pause", "Pause a schedule: its instants pass without a job.");
export const scheduleResume = pausing("resume", "Resume a paused schedule, from now on.");
