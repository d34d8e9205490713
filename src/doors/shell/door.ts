/**
 * The shell door: jobs of stages that run commands as the node's own user, for operators. It is the smallest whole
 * door there is, and the one to copy for a new door (ARCHITECTURE.md, "How to add a door").
 */
import { randomUUID } from "node:crypto";
import { defineDoor, type JobDocuments, type ShownJobs } from "#door/door.ts";
import { shellDoorKinds } from "./kinds.ts";
import { commandJob, planSubmit } from "./plan.ts";
import { ShellJob } from "./request.ts";
import { lastLineOf } from "./result.ts";

const documents: JobDocuments = {
  schema: ShellJob,
  plan(document, { name, unique = randomUUID(), ...wishes }) {
    const job = document as ShellJob;
    return planSubmit(name === undefined ? job : { ...job, name }, { ...wishes, unique });
  },
  fromCommand: commandJob,
};

const shows: ShownJobs = { result: lastLineOf };

export const shellDoor = defineDoor({
  name: "shell",
  about: "Jobs of stages that run commands as the node's own user, for operators.",
  kinds: [shellDoorKinds],
  keepsResults: true,
  commands: [],
  endpoints: [],
  documents,
  shows,
  pages: [],
  open: async (ports) => (await import("./serve.ts")).openShell(ports),
  elsewhere: async (place) => (await import("./serve.ts")).shellElsewhere(place),
});
