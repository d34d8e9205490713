import { command, jsonFlag } from "#door/command.ts";

export const secretNewKey = command({
  name: "secret new-key",
  about: "Print a new key for vault.keyFile; a node is not asked.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: jsonFlag,
  examples: ["millrace secret new-key"],
  async run({ values }, world) {
    const { newKeyLine } = await import("#vault/key-list.ts");
    const key = newKeyLine();
    world.out(values.json ? JSON.stringify({ key }) : key);
    return 0;
  },
});
