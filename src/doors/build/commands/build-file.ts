/** A build's document as its author wrote it: the files that it names are found, hashed, and offered for upload. */
import { createReadStream, type Stats } from "node:fs";
import { lstat, readdir, readlink, stat } from "node:fs/promises";
import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { BuildDocument, type DocumentInput } from "#doors/build/builds/document.ts";
import type {
  DirectoryNode,
  FileNode,
  SymlinkNode,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { canonicalDirectory, encodeDirectory } from "#worker/outputs/canonical.ts";
import { readChecked } from "#door/yaml-file.ts";

export type Upload = (digest: Digest, bytes: Uint8Array | { readonly file: string }) => Promise<void>;

/** No source folder has more. */
const entriesMax = 100_000;
const doing = "read build file";

/**
 * The document with every file replaced by its digest, as a node takes it. Files are looked up relative to the
 * document.
 */
export async function readBuildFile(path: string, upload: Upload): Promise<BuildDocument> {
  const document = await readChecked(path, BuildDocument, doing);
  const files = new LocalFiles(dirname(resolve(path)), upload);
  const actions: BuildDocument["actions"] = {};
  for (const [key, action] of Object.entries(document.actions)) {
    const inputs: DocumentInput[] = [];
    for (const input of action.inputs) inputs.push(await files.input(input));
    actions[key] = { ...action, inputs };
  }
  return { ...document, actions };
}

class LocalFiles {
  readonly #folder: string;
  readonly #upload: Upload;
  readonly #known = new Map<string, Promise<Partial<DocumentInput>>>();
  #entries = 0;

  constructor(folder: string, upload: Upload) {
    this.#folder = folder;
    this.#upload = upload;
  }

  async input(given: string | DocumentInput): Promise<DocumentInput> {
    const { file, ...input } = typeof given === "string" ? { file: given } : given;
    if (file === undefined) return input;
    let found = this.#known.get(file);
    if (!found) this.#known.set(file, (found = this.#find(file)));
    const { executable, ...what } = await found;
    return { path: file, ...(executable === true && { executable }), ...input, ...what };
  }

  async #find(file: string): Promise<Partial<DocumentInput>> {
    const path = resolve(this.#folder, file);
    const about = await stat(path).catch((cause: NodeJS.ErrnoException) => {
      throw new Fault("not-found", doing, { file: path, errno: cause.code }, cause);
    });
    if (about.isDirectory()) return { tree: await this.#tree(path) };
    if (!about.isFile()) throw new Fault("invalid", doing, { file: path, why: "it is neither a file nor a folder" });
    return { blob: await this.#file(path, about), executable: isExecutable(about) };
  }

  async #file(path: string, { size }: Stats): Promise<Digest> {
    const hash = createHash("sha256");
    for await (const part of createReadStream(path)) hash.update(part as Buffer);
    const digest = `${hash.digest("hex")}/${size}`;
    if (size > 0) await this.#upload(digest, { file: path });
    return digest;
  }

  async #tree(path: string): Promise<Digest> {
    const files: FileNode[] = [];
    const directories: DirectoryNode[] = [];
    const symlinks: SymlinkNode[] = [];
    for (const name of await readdir(path)) {
      this.#entries += 1;
      if (this.#entries > entriesMax) throw new Fault("exhausted", doing, { folder: path, entriesMax });
      const at = join(path, name);
      const about = await lstat(at);
      if (about.isSymbolicLink()) symlinks.push({ name, target: await readlink(at) });
      else if (about.isDirectory()) directories.push({ name, digest: wire(await this.#tree(at)) });
      else if (about.isFile())
        files.push({ name, digest: wire(await this.#file(at, about)), isExecutable: isExecutable(about) });
      else throw new Fault("invalid", doing, { file: at, why: "it is neither a file, a folder nor a link" });
    }
    const { digest, bytes } = encodeDirectory(canonicalDirectory(files, directories, symlinks), "sha256");
    if (bytes.length > 0) await this.#upload(digest, bytes);
    return digest;
  }
}

const isExecutable = ({ mode }: Stats): boolean => (mode & 0o111) !== 0;

function wire(digest: Digest): { readonly hash: string; readonly sizeBytes: number } {
  const [hash = "", size = "0"] = digest.split("/");
  return { hash, sizeBytes: Number(size) };
}
