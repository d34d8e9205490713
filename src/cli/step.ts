import { command, serverFlags } from "#door/command.ts";

const statuses = ["started", "succeeded", "failed", "skipped", "progress"] as const;

export const step = command({
  name: "step",
  about: "Report a step of the task that this runs in, as millrace job show lists them.",
  words: `<name> ${statuses.join("|")}`,
  positionalsMax: 2,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace step compile started", "millrace step compile succeeded"],
  async run({ positionals: [name, word], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { reportStep } = await import("#api/task-calls.ts");
    const { requireWord } = await import("./artifact/words.ts");
    const status = statuses.find((each) => each === word);
    requireWord(name && status, `write a name, and one of ${statuses.join(", ")}`);
    const body = { name: name ?? "", status: status ?? "started" };
    await apiOf(values, world.env, "report a step")(reportStep, { body });
    world.out(values.json ? JSON.stringify(body) : `${body.name} ${body.status}`);
    return 0;
  },
});
