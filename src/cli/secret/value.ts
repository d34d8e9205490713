/** A secret's value, from a file or from stdin; one line break at the end is not part of it. */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { Fault } from "#base/fault.ts";

export async function readValue(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY) process.stderr.write("value, then Ctrl-D (it is shown): ");
  const given = file === undefined ? await text(process.stdin) : await fromFile(file);
  return given.replace(/\r?\n$/, "");
}

async function fromFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new Fault("not-found", "read a secret's value", { file, errno: (error as NodeJS.ErrnoException).code });
  }
}
