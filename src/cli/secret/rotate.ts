import { command, serverFlags } from "#door/command.ts";

export const secretRotate = command({
  name: "secret rotate",
  about: "Wrap all secrets with the first key of the vault; a node that keeps its key itself makes a new one.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace secret rotate"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { rotateSecrets } = await import("#api/secrets.ts");
    const rotated = await apiOf(values, world.env, "rotate secrets")(rotateSecrets, {});
    const { key, rewrapped, kept } = rotated;
    world.out(values.json ? JSON.stringify(rotated) : `${rewrapped + kept} secrets are wrapped by ${key} now`);
    return 0;
  },
});
