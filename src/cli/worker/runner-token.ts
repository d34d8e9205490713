import { command } from "#door/command.ts";
import { workerToken } from "./token.ts";

/** What a runner of CI jobs may offer: the door, jobs of callers that are not operators, and any label of runs-on. */
const runnerLabels = ["door=ci", "isolation=sandbox", "runner=*"];

export const runnerToken = command({
  ...workerToken,
  name: "runner token",
  about: "Make a token that registers runners of CI jobs on other machines, for one tenant; it is shown once.",
  examples: ["millrace runner token --ttl 1h", "millrace runner token --tenant acme --uses 10 --ephemeral"],
  async run({ values, ...rest }, world) {
    const labels = [...runnerLabels, ...((values["labels"] as readonly string[] | undefined) ?? [])];
    return await workerToken.run({ ...rest, values: { name: "runner", ...values, labels } }, world);
  },
});
