import { command, serverFlags } from "#door/command.ts";

export const artifactGet = command({
  name: "artifact get",
  about: "Read an artifact of a job, or of the job that this runs in, into a file.",
  words: "<name> [file]",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    job: { type: "string", value: "JOB", about: "whose artifact; left out: of the job that this runs in" },
    force: { type: "boolean", about: "replace a file that is there" },
  },
  examples: ["millrace artifact get report.html --job j3-1", "millrace artifact get logs/all.txt all.txt"],
  async run({ positionals: [name, file], values }, world) {
    const { requireWord, sizeText } = await import("./words.ts");
    const { basename } = await import("node:path");
    const { apiOf } = await import("#cli/api.ts");
    const { getArtifact, getOwnArtifact } = await import("#api/task-calls.ts");
    const wanted = requireWord(name, "name an artifact; millrace artifact list shows them");
    const api = apiOf(values, world.env, "get an artifact");
    const { job } = values;
    const answer =
      job === undefined
        ? await api(getOwnArtifact, { params: { name: wanted } })
        : await api(getArtifact, { params: { job, name: wanted } });
    const path = file ?? basename(wanted);
    const sizeBytes = await written(path, answer, values.force ?? false);
    world.out(
      values.json ? JSON.stringify({ name: wanted, file: path, sizeBytes }) : `${path}: ${sizeText(sizeBytes)}`,
    );
    return 0;
  },
});

async function written(path: string, { body, headers }: Response, isForced: boolean): Promise<number> {
  const { createWriteStream } = await import("node:fs");
  const { pipeline } = await import("node:stream/promises");
  const { Fault } = await import("#base/fault.ts");
  const out = createWriteStream(path, { flags: isForced ? "w" : "wx" });
  try {
    await pipeline(body ?? [], out);
  } catch (cause) {
    const isThere = (cause as NodeJS.ErrnoException).code === "EEXIST";
    const why = isThere ? "it exists: name another file, or add --force" : "it could not be written";
    throw new Fault("invalid", "get an artifact", { file: path, why }, cause);
  }
  const expected = headers.get("content-length");
  if (expected !== null && Number(expected) !== out.bytesWritten)
    throw new Fault("unavailable", "get an artifact", { file: path, why: "the answer ended too early: try again" });
  return out.bytesWritten;
}
