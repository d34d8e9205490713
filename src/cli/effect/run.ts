import { command, serverFlags } from "#door/command.ts";
import { shared } from "./flags.ts";

export const effectRun = command({
  name: "effect run",
  about: "Run a command that changes the world outside, so that no attempt silently repeats it.",
  words: "<name> -- command [argument ...]",
  positionalsMax: 1,
  takesRest: true,
  flags: {
    ...serverFlags,
    ...shared,
    probe: {
      type: "string",
      value: "COMMAND",
      about: "finds out whether it was done, by a shell: exit code 0 says yes, 1 says no, others ask a person",
    },
    idempotent: { type: "boolean", about: "the target knows MILLRACE_EFFECT_KEY: running it again does no harm" },
    atomic: { type: "boolean", about: "a command that fails has done nothing" },
    wait: { type: "string", value: "DURATION", about: "how long to wait for a person's decision (24h)" },
  },
  examples: [
    "millrace effect run publish --probe 'npm view mill@1.2.0' -- npm publish",
    "millrace effect run charge --idempotent -- ./charge --key-from-env",
  ],
  async run({ positionals: [name], rest, values }, world) {
    if (name === undefined || rest === undefined || rest.length === 0) {
      world.note(
        "effect run: name the effect and give a command, for example: millrace effect run publish -- npm publish",
      );
      return 2;
    }
    const { runEffect } = await import("./run-effect.ts");
    return await runEffect(name, rest, values, world);
  },
});
