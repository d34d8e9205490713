/**
 * What steps declare as made by them, in the file that GITHUB_ARTIFACTS names: a file, or an image with its digest, on
 * each line. Steps after it read all of them, as JSON, in the file that GITHUB_ARTIFACTS_LIST names (CI-41).
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, isAbsolute, resolve } from "node:path";
import { FileCommandFault } from "./file-commands.ts";

export type Subject = { readonly name: string; readonly digest: string; readonly kind: "file" | "oci" };

export const artifactsBytesMax = 1024 * 1024;
const subjectsMax = 500;

export class Subjects {
  readonly #byName = new Map<string, Subject>();

  get all(): readonly Subject[] {
    return [...this.#byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** As GITHUB_ARTIFACTS_LIST has them. */
  get list(): string {
    const subjects = this.all.map(({ name, digest, kind }) => ({ name, digest, kind }));
    return JSON.stringify({ version: 1, subjects });
  }

  restore(subjects: readonly Subject[]): void {
    for (const subject of subjects) this.#byName.set(subject.name, subject);
  }

  /** All of a step's lines, or none of them when one is wrong. Returns how many are new. */
  async declare(text: string, workspace: string): Promise<number> {
    const declared: { readonly line: number; readonly subject: Subject }[] = [];
    for (const [index, raw] of text.split(/\r?\n/).entries()) {
      const line = raw.trim();
      if (line === "" || line.startsWith("#")) continue;
      declared.push({ line: index + 1, subject: await atLine(index + 1, () => subjectOf(line, workspace)) });
    }
    const before = this.#byName.size;
    for (const { line, subject } of declared) await atLine(line, async () => this.#add(subject));
    return this.#byName.size - before;
  }

  #add(subject: Subject): void {
    const known = this.#byName.get(subject.name);
    if (known?.digest === subject.digest) return;
    if (known)
      throw new FileCommandFault(
        `'${subject.name}' was declared before with the digest ${known.digest}, and now with ${subject.digest}`,
      );
    if (this.#byName.size >= subjectsMax) throw new FileCommandFault(`a job may declare ${subjectsMax} artifacts`);
    this.#byName.set(subject.name, subject);
  }
}

async function atLine<T>(line: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof FileCommandFault)) throw error;
    throw new FileCommandFault(`Line ${line}: ${error.message}`);
  }
}

const hexLengths: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

async function subjectOf(line: string, workspace: string): Promise<Subject> {
  if (line.includes("=")) throw new FileCommandFault("entries with '=' are not permitted");
  const [, scheme = "", rest = line] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(line) ?? [];
  switch (scheme.toLowerCase()) {
    case "file":
      if (rest.trim() === "") throw new FileCommandFault("file:// entries must name a path");
      return await fileSubject(rest, workspace);
    case "oci":
      return imageSubject(rest);
    case "":
      return isImage(line) ? imageSubject(line) : await fileSubject(line, workspace);
    default:
      throw new FileCommandFault(`the scheme ${scheme}:// is not known: file:// and oci:// are`);
  }
}

const digested = /^(.+)@(sha256|sha384|sha512):([0-9a-f]+)$/i;

function isImage(line: string): boolean {
  const [, , algorithm = "", hex = ""] = digested.exec(line) ?? [];
  return hex.length === hexLengths[algorithm.toLowerCase()];
}

function imageSubject(text: string): Subject {
  const [, name, algorithm = "", hex = ""] = digested.exec(text) ?? [];
  if (name === undefined) throw new FileCommandFault("oci:// entries must have a digest, as @sha256:<hex>");
  const kind = algorithm.toLowerCase();
  if (hex.length !== hexLengths[kind])
    throw new FileCommandFault(`a digest of ${kind} has ${hexLengths[kind]} hex digits, not ${hex.length}`);
  return { name, digest: `${kind}:${hex.toLowerCase()}`, kind: "oci" };
}

async function fileSubject(path: string, workspace: string): Promise<Subject> {
  const found = resolve(workspace, path);
  const facts = await stat(found).catch(() => undefined);
  const from = isAbsolute(path) ? "" : `, from the workspace ${workspace}`;
  if (!facts) throw new FileCommandFault(`the file '${path}' does not exist${from}`);
  if (!facts.isFile()) throw new FileCommandFault(`'${path}' is not a plain file`);
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(found)) hash.update(bytes as Uint8Array);
  return { name: basename(found), digest: `sha256:${hash.digest("hex")}`, kind: "file" };
}
