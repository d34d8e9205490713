import { command, nodeFlags } from "#door/command.ts";

export const jobSubmit = command({
  name: "job submit",
  about: "Record a job: a command line, or a file that says what to run after what.",
  words: "[file] | -- command [argument ...]",
  positionalsMax: 1,
  takesRest: true,
  flags: {
    ...nodeFlags,
    name: { type: "string", value: "NAME", about: "what to call it" },
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
    tenant: { type: "string", value: "NAME", about: "on whose behalf (default)" },
    follow: { type: "boolean", about: "watch it until it has ended" },
  },
  examples: [
    "millrace job submit -- echo hello",
    "millrace job submit --follow job.yaml",
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
    const { orderFromCommand, orderFromFile } = await import("#app/job-order.ts");
    const { name, key, merge, tenant = "default" } = values;
    const wishes = {
      tenant,
      priority,
      ...(name === undefined ? {} : { name }),
      ...(key === undefined ? {} : { key }),
      ...(merge === undefined ? {} : { merge }),
    };
    const order = file === undefined ? orderFromCommand(rest ?? [], wishes) : await orderFromFile(file, wishes);
    await using remote = await world.connect(values);
    const { jobId, created, merged } = await remote.work.submit(order);
    if (values.json) world.out(JSON.stringify({ kind: "submitted", jobId, created, merged }));
    else {
      const how = created ? "submitted" : merged ? "joined a living job" : "was submitted before under this key";
      world.out(values.follow ? `${jobId} ${how}` : `${jobId} ${how}; watch it with: millrace job watch ${jobId}`);
    }
    if (!values.follow) return 0;
    const { watchJob } = await import("./watching.ts");
    return await watchJob(remote.work, jobId, values, world);
  },
});
