import { callEndpoint } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";
import { showRun } from "#doors/ci/endpoints.ts";
import { fetchOf, usage } from "./node-call.ts";

export const ciWatch = command({
  name: "ci watch",
  about: "Show a run until it has ended: its jobs, their steps, and what they come to.",
  words: "<run>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace ci watch j0-1"],
  async run({ positionals: [run], values }, world) {
    if (run === undefined) return usage(world, "ci watch j0-1");
    const { watchRun } = await import("./watch-run.ts");
    return await watchRun(await fetchOf(values, world), run, { json: values.json === true }, world);
  },
});

export const ciLogs = command({
  name: "ci logs",
  about: "Show the log of a run's jobs, or of one, while it runs and afterwards.",
  words: "<run> [job]",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    follow: { type: "boolean", about: "go on until the job has ended", short: "f" },
    step: { type: "string", value: "NUMBER", about: "only this step" },
    search: {
      type: "string",
      value: "TEXT",
      about: "only lines with this text so far, in any case, with their numbers",
    },
  },
  examples: ["millrace ci logs j0-1", "millrace ci logs -f j0-1 build"],
  async run({ positionals: [run, job], values }, world) {
    if (run === undefined) return usage(world, "ci logs j0-1 build");
    const { findInLog, showLog } = await import("./watch-run.ts");
    const fetch = await fetchOf(values, world);
    const { jobs } = await callEndpoint(fetch, showRun, { params: { run } });
    const named = job === undefined ? jobs.flatMap((one) => one.job ?? []) : [job];
    for (const one of named) {
      const name = jobs.find((other) => other.job === one)?.name;
      if (named.length > 1 && name !== undefined && !values.json) world.note(`== ${name}`);
      if (values.search === undefined) await showLog(fetch, { run, job: one, ...values }, world);
      else await findInLog(fetch, { run, job: one, ...values, search: values.search }, world);
    }
    return 0;
  },
});
