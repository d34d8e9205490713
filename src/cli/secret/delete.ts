import { command, serverFlags } from "#door/command.ts";

export const secretDelete = command({
  name: "secret delete",
  about: "Delete a secret.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } },
  examples: ["millrace secret delete deploy/token"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note("secret delete: name the secret, for example: millrace secret delete deploy/token");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { deleteSecret } = await import("#api/secrets.ts");
    const { tenant } = values;
    await apiOf(
      values,
      world.env,
      "delete secret",
    )(deleteSecret, {
      params: { name },
      ...(tenant !== undefined && { tenant }),
    });
    world.out(values.json ? JSON.stringify({ name, deleted: true }) : `${name}: deleted`);
    return 0;
  },
});
