/** For tests: runs calls of the official npm clients, unmodified, as a step of a job would. */
import artifactClient from "@actions/artifact";
import { restoreCache, saveCache } from "@actions/cache";
import { hashFiles } from "@actions/glob";
import { cacheFile, downloadTool, find } from "@actions/tool-cache";
import { getInput, setOutput } from "@actions/core";

type Args = readonly never[];

const calls: Readonly<Record<string, (...args: Args) => Promise<unknown>>> = {
  uploadArtifact: (name: string, files: string[], root: string, options?: object) =>
    artifactClient.uploadArtifact(name, files, root, options),
  listArtifacts: () => artifactClient.listArtifacts(),
  getArtifact: (name: string) => artifactClient.getArtifact(name),
  deleteArtifact: (name: string) => artifactClient.deleteArtifact(name),
  async downloadArtifact(name: string, path: string, expectedHash?: string) {
    const { artifact } = await artifactClient.getArtifact(name);
    return await artifactClient.downloadArtifact(artifact.id, { path, ...(expectedHash && { expectedHash }) });
  },
  saveCache: (paths: string[], key: string) => saveCache(paths, key),
  restoreCache: (paths: string[], key: string, restoreKeys?: string[]) => restoreCache(paths, key, restoreKeys),
  hashFiles: (pattern: string) => hashFiles(pattern),
  async toolCache(url: string, auth?: string) {
    const file = await downloadTool(url, undefined, auth);
    await cacheFile(file, "tool", "tool", "1.2.3");
    return find("tool", "1.2.3");
  },
  core: (name: string) => {
    setOutput("seen", getInput(name));
    return Promise.resolve(getInput(name));
  },
} satisfies Record<string, (...args: never[]) => Promise<unknown>>;

const asked = JSON.parse(process.argv[2] ?? "[]") as readonly (readonly [string, ...never[]])[];
const answers: object[] = [];
for (const [name, ...args] of asked) {
  try {
    answers.push({ ok: true, value: (await calls[name]?.(...args)) ?? null });
  } catch (error) {
    answers.push({ ok: false, error: (error as Error).message, name: (error as Error).name });
  }
}
console.log(`\nANSWERS ${JSON.stringify(answers)}`);
