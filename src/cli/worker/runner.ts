import { command } from "#door/command.ts";
import { worker } from "./worker.ts";

/** A worker whose labels are written as `runs-on` asks for them. */
export const runner = command({
  ...worker,
  name: "runner",
  about: "Run CI jobs of a cluster on a machine that is no node of it and only reaches out.",
  flags: {
    ...worker.flags,
    labels: {
      type: "strings",
      value: "LABEL",
      about: "what runs-on may ask for, besides self-hosted and what this machine is; may be repeated",
    },
  },
  examples: [
    "millrace runner --server https://build.example.com:8980 --token-file runner.token",
    "millrace runner --server http://10.0.0.7:8980 --token-file runner.token --labels gpu,big --slots 2",
  ],
  async run({ values }, world) {
    const { runElsewhere } = await import("./life.ts");
    const labels = (values.labels ?? [])
      .flatMap((text) => text.split(","))
      .filter((label) => label !== "")
      .map((label) => (label.includes("=") ? label : `runner=${label.toLowerCase()}`));
    return await runElsewhere({ ...values, labels }, world, "ci");
  },
});
