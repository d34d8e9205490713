import { command, serverFlags } from "#door/command.ts";

export const artifactPut = command({
  name: "artifact put",
  about: "Keep a file as an artifact of the job that this runs in; for what runs as a task.",
  words: "<name> [file]",
  positionalsMax: 2,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace artifact put report.html", "millrace artifact put logs/all.txt build/output.log"],
  async run({ positionals: [name, file = name], values }, world) {
    const { openFile, requireWord, sizeText } = await import("./words.ts");
    const { apiOf } = await import("#cli/api.ts");
    const { putArtifact } = await import("#api/task-calls.ts");
    const path = requireWord(file, "name an artifact, and the file that has its bytes");
    const bytes = await openFile("put an artifact", path);
    const api = apiOf(values, world.env, "put an artifact");
    const put = await api(putArtifact, { params: { name: name ?? path }, body: bytes.stream() });
    world.out(
      values.json ? JSON.stringify(put) : `${put.name}: ${sizeText(put.sizeBytes)}, kept until ${put.keptUntil}`,
    );
    return 0;
  },
});
