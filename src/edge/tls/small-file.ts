/** Files named in the configuration: read whole, within a size limit, with errors that say what to check. */
import { open } from "node:fs/promises";
import { Fault, isFault } from "#base/fault.ts";

const hints: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file: check the path in the configuration",
  EACCES: "this process may not read it: check the file's owner and mode",
  EPERM: "this process may not read it: check the file's owner and mode",
  EISDIR: "it is a folder: name the file in it",
  ENOTDIR: "part of its path is not a folder: check the path in the configuration",
};

export async function readSmallFile(file: string, doing: string, sizeBytesMax = 1024 * 1024): Promise<string> {
  try {
    await using handle = await open(file, "r");
    const { size } = await handle.stat();
    if (size > sizeBytesMax) throw new Fault("exhausted", doing, { file, sizeBytes: size, sizeBytesMax });
    return await handle.readFile("utf8");
  } catch (error) {
    if (isFault(error)) throw error;
    const errno = (error as NodeJS.ErrnoException).code ?? "";
    const code = errno === "ENOENT" ? "not-found" : "unavailable";
    throw new Fault(code, doing, { file, errno, why: hints[errno] }, error);
  }
}
