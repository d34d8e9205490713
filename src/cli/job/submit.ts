import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Fault } from "#base/fault.ts";
import { command, serverFlags } from "#door/command.ts";

/** Waits for a node that is restarting: the request's key makes it safe to send it again. */
const patienceMs = 5_000;

export const jobSubmit = command({
  name: "job submit",
  about: "Record a job: a command line, or a file that says what to run after what.",
  words: "[file] | -- command [argument ...]",
  positionalsMax: 1,
  takesRest: true,
  flags: {
    ...serverFlags,
    name: { type: "string", value: "NAME", about: "what to call it; left out: the command line as typed" },
    array: {
      type: "string",
      value: "COUNT",
      about: "run the command this many times, as tasks with the indices 1 and up in MILLRACE_INDEX",
    },
    key: {
      type: "string",
      value: "KEY",
      about: "the same key never makes a second job, however often it is submitted",
    },
    merge: {
      type: "string",
      value: "KEY",
      about: "join a living job with the same merge key instead of making another",
    },
    priority: { type: "string", value: "NUMBER", about: "-100 to 100; higher runs first, within the tenant (0)" },
    tag: { type: "strings", value: "NAME=VALUE", about: "what to find it by later: millrace job list --tag" },
    series: { type: "string", value: "NAME", about: "take the next number of this series" },
    tenant: { type: "string", value: "NAME", about: "on whose behalf (default)" },
    follow: { type: "boolean", about: "show what it prints until it has ended" },
  },
  examples: [
    "millrace job submit --follow -- echo hello",
    "millrace job submit --follow job.yaml",
    "millrace job submit --array 1000 -- sh -c 'echo part $MILLRACE_INDEX'",
    "millrace job submit --key nightly-2026-11-15 job.yaml",
  ],
  async run({ positionals: [file], rest, values }, world) {
    if ((file === undefined) === (rest === undefined || rest.length === 0)) {
      world.note("job submit: give a job file or a command line, for example: millrace job submit -- echo hello");
      return 2;
    }
    const priority = Number(values.priority ?? 0);
    if (!Number.isInteger(priority) || Math.abs(priority) > 100) {
      world.note(`job submit: --priority is a whole number from -100 to 100, not ${JSON.stringify(values.priority)}`);
      return 2;
    }
    const { apiOf, withPatience } = await import("#cli/api.ts");
    const { submitJob } = await import("#api/jobs.ts");
    const { name, key, merge, tenant, series } = values;
    const wrongTag = (values.tag ?? []).find((text) => !/^[^=]+=./.test(text));
    if (wrongTag !== undefined) {
      world.note(`job submit: --tag is written NAME=VALUE, not ${JSON.stringify(wrongTag)}`);
      return 2;
    }
    const tags = values.tag && { tags: Object.fromEntries(values.tag.map(pairOf)) };
    const array = values.array === undefined ? undefined : Number(values.array);
    if (array !== undefined && (file !== undefined || !(Number.isInteger(array) && array >= 1 && array <= 1_000_000))) {
      const why =
        file === undefined ? "is a whole number from 1 to 1000000" : "goes with a command line; a file says it";
      world.note(`job submit: --array ${why}`);
      return 2;
    }
    const what = file === undefined ? { command: [...(rest ?? [])], array } : { document: await textOf(file) };
    const body = { ...what, priority, name, key, merge, series, ...tags };
    const idempotencyKey = randomUUID();
    const api = apiOf(values, world.env, "submit job");
    const { job, created, merged, number } = await withPatience(patienceMs, () =>
      api(submitJob, { body, idempotencyKey, ...(tenant !== undefined && { tenant }) }),
    );
    const first = number === undefined ? "submitted" : `submitted as number ${number}`;
    const how = created ? first : merged ? "joined a living job" : "was submitted before under this key";
    if (values.json) world.out(JSON.stringify({ kind: "submitted", jobId: job, created, merged, number }));
    else if (values.follow) world.note(`${job} ${how}`);
    else if (world.isOutTerminal) world.out(`${job} ${how}; what it prints: millrace job logs -f ${job}`);
    else {
      world.out(job);
      if (!created) world.note(`${job} ${how}`);
    }
    if (!values.follow) return 0;
    const { followToEnd } = await import("./follow.ts");
    return await followToEnd(values, { jobId: job, json: values.json === true, output: true }, world);
  },
});

function pairOf(text: string): [string, string] {
  const at = text.indexOf("=");
  return [text.slice(0, at), text.slice(at + 1)];
}

async function textOf(file: string): Promise<string> {
  return await readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    const code = cause.code === "ENOENT" ? "not-found" : "unavailable";
    throw new Fault(code, "read job file", { file, errno: cause.code }, cause);
  });
}
