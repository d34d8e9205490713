import { command } from "#door/command.ts";

export const ciLint = command({
  name: "ci lint",
  about: "Check workflow files: what cannot run, and what should not.",
  words: "[file ...]",
  positionalsMax: 1000,
  takesRest: false,
  flags: {
    json: { type: "boolean", about: "one JSON object per line" },
    sarif: { type: "boolean", about: "one SARIF document, for code hosts" },
    label: {
      type: "strings",
      value: "LABEL",
      about: "a label that runners of your own have; may be given several times",
    },
    strict: { type: "boolean", about: "fail on warnings as well" },
  },
  examples: ["millrace ci lint", "millrace ci lint --sarif .github/workflows/test.yml > lint.sarif"],
  async run({ positionals, values }, world) {
    const { lintWorkflows } = await import("#doors/ci/lint/command.ts");
    return await lintWorkflows({ ...values, files: positionals }, world, process.cwd());
  },
});
