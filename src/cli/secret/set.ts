import { command, serverFlags } from "#door/command.ts";

export const secretSet = command({
  name: "secret set",
  about: "Set a secret, or replace its value: read from stdin, so that it is in no list of processes and no history.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "NAME", about: "of this tenant" },
    file: { type: "string", value: "FILE", about: "read the value from this file instead" },
  },
  examples: ["millrace secret set deploy/token", "millrace secret set tls/key --file key.pem"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note("secret set: name the secret, for example: millrace secret set deploy/token < token.txt");
      return 2;
    }
    const { readValue } = await import("./value.ts");
    const value = await readValue(values.file);
    if (value === "") {
      world.note("secret set: the value is empty; write it to stdin, or name a file with --file");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { setSecret } = await import("#api/secrets.ts");
    const { tenant } = values;
    const set = await apiOf(
      values,
      world.env,
      "set secret",
    )(setSecret, {
      params: { name },
      body: { value },
      ...(tenant !== undefined && { tenant }),
    });
    world.out(values.json ? JSON.stringify(set) : `${set.name}: set, version ${set.version}`);
    return 0;
  },
});
