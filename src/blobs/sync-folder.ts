import { open } from "node:fs/promises";

/** Names in it outlive a loss of power. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync().catch((error: NodeJS.ErrnoException) => {
    // Some systems (Windows) have no durable folders to ask for.
    if (!["EPERM", "EINVAL", "EISDIR"].includes(error.code ?? "")) throw error;
  });
}
