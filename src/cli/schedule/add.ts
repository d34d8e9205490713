import { command, serverFlags } from "#door/command.ts";

const catchUps = ["skip", "once", "all"] as const;

export const scheduleAdd = command({
  name: "schedule add",
  about: "Start a job at every instant of a cron line; an existing schedule of that name is replaced.",
  words: "<name> [file] | <name> -- command [argument ...]",
  positionalsMax: 2,
  takesRest: true,
  flags: {
    ...serverFlags,
    cron: { type: "string", value: "LINE", about: "minute, hour, day of month, month, day of week" },
    zone: { type: "string", value: "ZONE", about: "an IANA time zone, such as Europe/Berlin (UTC)" },
    "catch-up": {
      type: "string",
      value: "POLICY",
      about: "of instants that no node was there for: skip, once, all (once)",
    },
    door: { type: "string", value: "NAME", about: "whose job file it is; left out: the door of command lines" },
    priority: { type: "string", value: "NUMBER", about: "-100 to 100; higher runs first, within the tenant (0)" },
    tenant: { type: "string", value: "NAME", about: "of this tenant" },
  },
  examples: [
    'millrace schedule add nightly --cron "30 2 * * *" --zone Europe/Berlin job.yaml',
    'millrace schedule add tick --cron "*/5 * * * *" --catch-up skip -- echo tick',
  ],
  async run({ positionals: [name, file], rest, values }, world) {
    const isCommand = rest !== undefined && rest.length > 0;
    if (name === undefined || values.cron === undefined || isCommand === (file !== undefined)) {
      world.note('schedule add: give a name, --cron "30 2 * * *", and a job file or a command line after --');
      return 2;
    }
    const catchUp = catchUps.find((each) => each === (values["catch-up"] ?? "once"));
    const priority = Number(values.priority ?? 0);
    if (!catchUp || !Number.isInteger(priority) || Math.abs(priority) > 100) {
      world.note("schedule add: --catch-up is skip, once or all; --priority a whole number from -100 to 100");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { setSchedule } = await import("#api/schedules.ts");
    const { readFile } = await import("node:fs/promises");
    const { tenant, zone, door, cron } = values;
    const what = isCommand ? { command: [...rest] } : { document: await readFile(file ?? "", "utf8") };
    const set = await apiOf(
      values,
      world.env,
      "add schedule",
    )(setSchedule, {
      params: { name },
      body: {
        cron,
        catchUp,
        priority,
        ...what,
        ...(zone !== undefined && { zone }),
        ...(door !== undefined && { door }),
      },
      ...(tenant !== undefined && { tenant }),
    });
    const { scheduleLines } = await import("./lines.ts");
    for (const line of values.json ? [JSON.stringify(set)] : scheduleLines(set)) world.out(line);
    return 0;
  },
});
