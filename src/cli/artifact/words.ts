/** Words of the commands for artifacts. */
import { Fault } from "#base/fault.ts";

export function requireWord(word: string | undefined, why: string): string {
  if (word !== undefined && word !== "") return word;
  throw new Fault("invalid", "read the command line", { why });
}

export const sizeText = (bytes: number): string => `${bytes} byte${bytes === 1 ? "" : "s"}`;

export async function openFile(doing: string, path: string): Promise<Blob> {
  const { openAsBlob } = await import("node:fs");
  try {
    return await openAsBlob(path);
  } catch (cause) {
    throw new Fault("invalid", doing, { file: path, why: "it cannot be read" }, cause);
  }
}
