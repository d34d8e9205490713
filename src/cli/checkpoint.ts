import { command, serverFlags } from "#door/command.ts";

export const checkpoint = command({
  name: "checkpoint",
  about:
    "Record how far the command that this runs in has got: its next attempt gets the file as $MILLRACE_CHECKPOINT.",
  words: "<file>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace checkpoint state.json", "millrace checkpoint state.tar --json"],
  async run({ positionals: [file], values }, world) {
    const { openFile, requireWord, sizeText } = await import("./artifact/words.ts");
    const { apiOf } = await import("#cli/api.ts");
    const { putCheckpoint } = await import("#api/task-calls.ts");
    const path = requireWord(file, "name the file that has the state");
    const bytes = await openFile("record a checkpoint", path);
    const put = await apiOf(values, world.env, "record a checkpoint")(putCheckpoint, { body: bytes.stream() });
    world.out(values.json ? JSON.stringify(put) : `${path}: ${sizeText(put.sizeBytes)} recorded`);
    return 0;
  },
});
