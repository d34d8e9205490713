import { callEndpoint } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";

export const deployRelease = command({
  name: "deploy release",
  about: "Build a commit and roll it out, in the waves that the service file says.",
  words: "<service file>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    sha: { type: "string", value: "SHA", about: "the commit to build (the newest of the repository)" },
    repository: { type: "string", value: "PATH", about: "where git finds the commit (the service file's folder)" },
    "not-before": { type: "string", value: "TIME", about: "no wave begins before it, such as 2026-11-18T20:00:00Z" },
    key: { type: "string", value: "KEY", about: "the same key never makes a second release" },
  },
  examples: ["millrace deploy release service.yaml", "millrace deploy release service.yaml --sha 4f2c91a"],
  async run({ positionals: [file], values }, world) {
    if (file === undefined) {
      world.note("deploy release: name a service file, for example: millrace deploy release service.yaml");
      return 2;
    }
    const { releaseFrom } = await import("./release-from.ts");
    const { startRelease } = await import("#doors/deploy/endpoints.ts");
    const body = await releaseFrom(file, values);
    const http = await world.http(values);
    const { job } = await callEndpoint((path, init) => http.reach(path, init), startRelease, {
      body: { ...body, notBefore: values["not-before"] },
      ...(values.key !== undefined && { idempotencyKey: values.key }),
    });
    if (values.json) world.out(JSON.stringify({ kind: "released", job, sha: body.sha }));
    else world.out(world.isTerminal ? `${job} started; watch it with: millrace deploy watch ${job}` : job);
    return 0;
  },
});
