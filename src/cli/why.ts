import { isFault } from "#base/fault.ts";
import { parseJob } from "#base/ids.ts";
import { showJob } from "#api/jobs.ts";
import { command, serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import { apiOf } from "./api.ts";
import { askServer, serverOf } from "#app/client/server.ts";

export const why = command({
  name: "why",
  about: "Say why a job, a build, an action or a run waits, was run, skipped or run again, and how it ended.",
  words: "<job | build | run | operation | action-digest> [action of the build, or job of the run] [step]",
  positionalsMax: 3,
  takesRest: false,
  flags: {
    ...serverFlags,
    instance: { type: "string", value: "NAME", about: "the instance name that the build used, if it used one" },
  },
  examples: ["millrace why j0-1", "millrace why operations/j0-1", "millrace why j0-1 bread", "millrace why HASH/SIZE"],
  async run({ positionals: [of, ...parts], values }, world) {
    const [key] = parts;
    if (of === undefined) {
      world.note(
        "why: name a job, a build, an operation or an action's digest (millrace job list shows what there is)",
      );
      return 2;
    }
    const { instance } = values;
    const query = new URLSearchParams({ of, ...(key !== undefined && { key }), ...(instance && { instance }) });
    const server = serverOf(values, world.env);
    let answer: { readonly lines: readonly string[] };
    try {
      const path = (parseJob(of) && (await pathOfDoor(values, of, parts, world))) ?? `/v1/why?${query.toString()}`;
      const response = await askServer(server, path, "ask why");
      answer = (await response.json()) as typeof answer;
    } catch (error) {
      // A door explains what is its own; any other job is explained by what its tasks wait for.
      if (!isFault(error, "not-found") || key !== undefined || !parseJob(of)) throw error;
      const { explainJob } = await import("./job/explain-job.ts");
      return await explainJob(values, of, world);
    }
    if (values.json) world.out(JSON.stringify(answer));
    else for (const line of answer.lines) world.out(line);
    if (!values.json && answer.lines.length === 0) world.out("there is nothing to say about it");
    return 0;
  },
});

/** Undefined where the job's door has no path of its own. */
async function pathOfDoor(
  values: ServerFlagValues,
  job: string,
  parts: readonly string[],
  world: World,
): Promise<string | undefined> {
  const { doors } = await import("#app/doors.ts");
  const { door } = await apiOf(values, world.env, "ask why")(showJob, { params: { job } });
  return doors.find(({ kinds }) => kinds.some((one) => one.door === door))?.whyPath?.(job, parts);
}
