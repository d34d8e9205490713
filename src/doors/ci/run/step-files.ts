/** The files by which a step speaks: made before it runs, read after it, even when it failed (CI-41, CI-44). */
import { randomUUID } from "node:crypto";
import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FileCommandFault, fileBytesMax, isEnvRefused, pairsIn, pathsIn, summaryBytesMax } from "./file-commands.ts";
import type { StepOutput } from "#doors/ci/run/printed/step-output.ts";

export type StepFiles = {
  readonly env: string;
  readonly output: string;
  readonly state: string;
  readonly path: string;
  readonly summary: string;
};

export async function makeStepFiles(tempFolder: string): Promise<StepFiles> {
  const folder = join(tempFolder, "_runner_file_commands");
  await mkdir(folder, { recursive: true });
  const id = randomUUID();
  const files: StepFiles = {
    env: join(folder, `set_env_${id}`),
    output: join(folder, `set_output_${id}`),
    state: join(folder, `save_state_${id}`),
    path: join(folder, `add_path_${id}`),
    summary: join(folder, `step_summary_${id}`),
  };
  await Promise.all(Object.values(files).map((path) => writeFile(path, "")));
  return files;
}

/** The step's summary; throws where a file is not as it should be. */
export async function readStepFiles(files: StepFiles, output: StepOutput): Promise<string> {
  const { effects } = output;
  for (const { name, value } of pairsIn(await text(files.env, fileBytesMax, "GITHUB_ENV"))) {
    if (isEnvRefused(name))
      throw new FileCommandFault(`Can't store ${name} output parameter using '$GITHUB_ENV' command.`);
    effects.env.set(name, value);
  }
  for (const { name, value } of pairsIn(await text(files.output, fileBytesMax, "GITHUB_OUTPUT")))
    effects.outputs.set(name, value);
  for (const { name, value } of pairsIn(await text(files.state, fileBytesMax, "GITHUB_STATE")))
    effects.state.set(name, value);
  effects.paths.push(...pathsIn(await text(files.path, fileBytesMax, "GITHUB_PATH")));
  return await text(files.summary, summaryBytesMax, "$GITHUB_STEP_SUMMARY");
}

async function text(path: string, bytesMax: number, name: string): Promise<string> {
  const file = await open(path, "r").catch(() => undefined);
  if (!file) return ""; // the step removed it
  await using handle = file;
  const { size } = await handle.stat();
  if (size > bytesMax)
    throw new FileCommandFault(
      `${name} upload aborted, supports content up to a size of ${bytesMax / 1024}k, got ${Math.ceil(size / 1024)}k`,
    );
  return (await handle.readFile("utf8")).replace(/^\uFEFF/, "");
}

export async function removeStepFiles(files: StepFiles): Promise<void> {
  await Promise.all(Object.values(files).map((path) => rm(path, { force: true })));
}
