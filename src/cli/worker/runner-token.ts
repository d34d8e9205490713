import { command } from "#door/command.ts";
import { workerToken } from "./token.ts";

/** What a runner of CI jobs may offer: the door, jobs of callers that are not operators, and any label of runs-on. */
const runnerLabels = ["door=ci", "isolation=sandbox", "runner=*", "containers=*"];

export const runnerToken = command({
  ...workerToken,
  name: "runner token",
  about: "Make a token that registers runners of CI jobs on other machines, for one tenant; it is shown once.",
  flags: {
    ...workerToken.flags,
    group: { type: "strings", value: "GROUP", about: "groups of runners that they are in; may be repeated" },
  },
  examples: [
    "millrace runner token --group gpu --labels region=eu",
    "millrace runner token --ttl 1h",
    "millrace runner token --tenant acme --uses 10 --ephemeral",
  ],
  async run({ values, ...rest }, world) {
    const { group: groups = [], labels: more = [] } = values as {
      readonly group?: string[];
      readonly labels?: string[];
    };
    const labels = [
      ...runnerLabels,
      ...groups.flatMap((text) => text.split(",")).map((group) => `group=${group.trim().toLowerCase()}`),
      ...more,
    ];
    return await workerToken.run({ ...rest, values: { name: "runner", ...values, labels } }, world);
  },
});
