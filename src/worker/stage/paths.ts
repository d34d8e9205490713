/** Names and paths as the Remote Execution API allows them (REAPI-70, REAPI-75, REAPI-76). Pure. */
import { Fault } from "#base/fault.ts";

const refuse = (doing: string, facts: Readonly<Record<string, string>>): never => {
  throw new Fault("invalid", doing, facts);
};

/** REAPI-70: one name in a directory. */
export function checkName(name: string, where: string): void {
  const isBad = name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0");
  if (isBad) refuse("read directory", { where, name: shown(name), why: "it is not a valid file name" });
  if (Buffer.byteLength(name) > nameBytesMax) refuse("read directory", { where, why: "the name is too long" });
}

/** The limit of file systems. */
const nameBytesMax = 255;
const pathBytesMax = 4_000;

/** REAPI-75: a path below the input root; the tree decides whether it exists. "" is the root. */
export function checkWorkingDirectory(path: string): string {
  if (path === "") return "";
  const parts = path.split("/");
  const isBad = path.includes("\0") || Buffer.byteLength(path) > pathBytesMax;
  if (isBad || parts.some((part) => part === "" || part === "." || part === ".."))
    refuse("read command", { workingDirectory: shown(path), why: "it is not a plain relative path" });
  return path;
}

/**
 * REAPI-75: resolves an output path, which is relative to the working directory, to one relative to the root. `..` is
 * allowed as long as it stays inside. "" is the working directory itself.
 */
export function resolveOutput(workingDirectory: string, path: string): string {
  const bad = (why: string): never => refuse("read command", { output: shown(path), why });
  if (path.startsWith("/")) bad("absolute");
  if (path !== "" && path.endsWith("/")) bad("it ends with a slash");
  if (path.includes("\0") || Buffer.byteLength(path) > pathBytesMax) bad("it is not a valid path");
  const parts = workingDirectory === "" ? [] : workingDirectory.split("/");
  for (const part of path === "" ? [] : path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) bad("it leads out of the input root");
  }
  return parts.join("/");
}

/** Every folder above it, outermost first: "a/b/c" has "a" and "a/b". */
export function parentsOf(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 100));
