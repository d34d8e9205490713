import { command, serverFlags } from "#door/command.ts";

const kinds = ["job", "stage", "task", "step"] as const;

export const events = command({
  name: "events",
  about: "Show the event feed: every transition of jobs, stages, tasks and steps.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    follow: { type: "boolean", about: "go on with what happens, through restarts of the node" },
    from: { type: "string", value: "WHERE", about: "now, oldest, or a cursor (oldest; now with --follow)" },
    kind: { type: "strings", value: "KIND", about: `only ${kinds.join(", ")}; several: any of them` },
    door: { type: "strings", value: "NAME", about: "only of this door; several: any of them" },
    tag: { type: "strings", value: "NAME=VALUE", about: "only of jobs with this tag; several: with all of them" },
    job: { type: "string", value: "JOB", about: "only of this job" },
    limit: { type: "string", value: "NUMBER", about: "without --follow: at most so many (100), up to 1000" },
    tenant: { type: "string", value: "NAME", about: "only this tenant's" },
  },
  examples: [
    "millrace events",
    "millrace events --follow --kind job --door ci",
    "millrace events --json --from oldest --tag repository=mill",
  ],
  async run({ values }, world) {
    const wrong = values.kind?.find((kind) => !(kinds as readonly string[]).includes(kind));
    const limit = Number(values.limit ?? 100);
    if (wrong !== undefined || values.tag?.some((tag) => !tag.includes("="))) {
      world.note(`events: --kind is one of ${kinds.join(", ")}; --tag is name=value`);
      return 2;
    }
    if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
      world.note("events: --limit is a whole number from 1 to 1000");
      return 2;
    }
    const { showEvents } = await import("./event-lines.ts");
    const { from, kind, door, tag, job, tenant } = values;
    const named = (["now", "oldest"] as const).find((each) => each === from);
    const start = from === undefined ? {} : named ? { from: named } : { cursor: from };
    const filters = {
      ...(kind && { kind: kind as (typeof kinds)[number][] }),
      ...(door && { door: [...door] }),
      ...(tag && { tag: [...tag] }),
      job,
    };
    const asked = { filters, start, limit, json: values.json === true, tenant };
    return await showEvents(values, asked, values.follow === true, world);
  },
});
