import { command, serverFlags } from "#door/command.ts";

export const buildSubmit = command({
  name: "build submit",
  about: "Record a build: a file that says what to run, on which inputs, and what each action takes from the others.",
  words: "<file>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    key: { type: "string", value: "KEY", about: "the same key never makes a second build, however often it is sent" },
    priority: { type: "string", value: "NUMBER", about: "-100 to 100; higher runs first, within the tenant (0)" },
    follow: { type: "boolean", about: "watch it until it has ended" },
  },
  examples: ["millrace build submit build.yaml", "millrace build submit --follow --key nightly-2026-11-15 build.yaml"],
  async run({ positionals: [file], values }, world) {
    const priority = Number(values.priority ?? 0);
    if (file === undefined || !Number.isInteger(priority)) {
      world.note("build submit: name a file, for example: millrace build submit build.yaml");
      return 2;
    }
    const { readBuildFile } = await import("./build-file.ts");
    const { builds, uploadTo, watchBuild } = await import("./build-server.ts");
    const server = await world.http(values);
    const document = await readBuildFile(file, uploadTo(server));
    const { build, created } = await builds<{ readonly build: string; readonly created: boolean }>(
      server,
      `?priority=${priority}`,
      {
        method: "POST",
        body: JSON.stringify(document),
        headers: {
          "content-type": "application/json",
          ...(values.key !== undefined && { "idempotency-key": values.key }),
        },
      },
    );
    const how = created ? "submitted" : "was submitted before under this key";
    if (values.json) world.out(JSON.stringify({ kind: "submitted", build, created }));
    else world.out(values.follow ? `${build} ${how}` : `${build} ${how}; watch it with: millrace build watch ${build}`);
    return values.follow ? await watchBuild(server, build, values, world) : 0;
  },
});
