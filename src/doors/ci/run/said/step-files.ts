/** The files by which a step speaks: made before it runs, read after it, even when it failed (CI-41, CI-44). */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { artifactsBytesMax } from "./artifact-subjects.ts";
import { FileCommandFault, fileBytesMax, isEnvRefused, pairsIn, pathsIn, summaryBytesMax } from "./file-commands.ts";
import type { StepOutput } from "#doors/ci/run/printed/step-output.ts";

export type StepFiles = {
  readonly env: string;
  readonly output: string;
  readonly state: string;
  readonly path: string;
  readonly summary: string;
  readonly artifacts: string;
  readonly artifactsList: string;
};

/** `list`: what the steps before it have declared as artifacts, for it to read. */
export async function makeStepFiles(tempFolder: string, list: string): Promise<StepFiles> {
  const folder = join(tempFolder, "_runner_file_commands");
  await mkdir(folder, { recursive: true });
  const id = randomUUID();
  const files: StepFiles = {
    env: join(folder, `set_env_${id}`),
    output: join(folder, `set_output_${id}`),
    state: join(folder, `save_state_${id}`),
    path: join(folder, `add_path_${id}`),
    summary: join(folder, `step_summary_${id}`),
    artifacts: join(folder, `artifacts_${id}`),
    artifactsList: join(folder, `artifacts_list_${id}`),
  };
  const textOfEach = ({ artifactsList }: StepFiles, path: string): string => (path === artifactsList ? list : "");
  await Promise.all(Object.values(files).map((path) => writeFile(path, textOfEach(files, path))));
  return files;
}

export type StepSaid = {
  /** Left out: there is none. */
  readonly summary?: string;
  /** Lines of GITHUB_ARTIFACTS. */
  readonly artifacts: string;
  /** What is wrong with its files: it fails the step. */
  readonly wrong: readonly string[];
};

/** Every file is read, whatever is wrong with the others. */
export async function readStepFiles(files: StepFiles, output: StepOutput): Promise<StepSaid> {
  const { effects } = output;
  const wrong: string[] = [];
  const read = async (path: string, named: Named, take: (text: string) => void): Promise<void> => {
    try {
      take(await textOf(path, named));
    } catch (error) {
      if (!(error instanceof FileCommandFault)) throw error;
      wrong.push(`Unable to process file command '${named.name}' successfully. ${error.message}`);
    }
  };
  const into = (values: Map<string, string>) => (text: string) => {
    for (const { name, value } of pairsIn(text)) values.set(name, value);
  };
  await read(files.env, { name: "env", bytesMax: fileBytesMax }, (text) => takeEnv(text, output));
  await read(files.output, { name: "output", bytesMax: fileBytesMax }, into(effects.outputs));
  await read(files.state, { name: "state", bytesMax: fileBytesMax }, into(effects.state));
  await read(files.path, { name: "path", bytesMax: fileBytesMax }, (text) => effects.paths.push(...pathsIn(text)));
  let artifacts = "";
  await read(files.artifacts, { name: "artifacts", bytesMax: artifactsBytesMax }, (text) => (artifacts = text));
  return { artifacts, wrong, ...(await summaryIn(files.summary, output)) };
}

/** A variable that may not be set is left out, with an error in the log; the step goes on (CI-43). */
function takeEnv(text: string, output: StepOutput): void {
  for (const { name, value } of pairsIn(text))
    if (isEnvRefused(name))
      output.annotate({
        level: "error",
        message: `Can't store ${name.toUpperCase()} output parameter using '$GITHUB_ENV' command.`,
      });
    else output.effects.env.set(name, value);
}

/** One that is too long is left out, with an error in the log; the step goes on (CI-44). */
async function summaryIn(path: string, output: StepOutput): Promise<Pick<StepSaid, "summary">> {
  try {
    const summary = await textOf(path, { name: "step_summary", bytesMax: summaryBytesMax });
    return summary === "" ? {} : { summary };
  } catch (error) {
    if (!(error instanceof FileCommandFault)) throw error;
    output.annotate({ level: "error", message: `$GITHUB_STEP_SUMMARY upload aborted. ${error.message}` });
    return {};
  }
}

type Named = { readonly name: string; readonly bytesMax: number };

async function textOf(path: string, { name, bytesMax }: Named): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (!file) return ""; // the step removed it
  await using handle = file;
  const facts = await handle.stat();
  if (!facts.isFile()) throw new FileCommandFault(`The file of ${name} is no file any more`);
  if (facts.size > bytesMax)
    throw new FileCommandFault(
      `It supports content up to a size of ${bytesMax / 1024}k, got ${Math.ceil(facts.size / 1024)}k`,
    );
  return (await handle.readFile("utf8")).replace(/^\uFEFF/, "");
}

export async function removeStepFiles(files: StepFiles): Promise<void> {
  await Promise.all(Object.values(files).map((path) => rm(path, { force: true })));
}
