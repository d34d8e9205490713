/** For a file operation's `catch`: undefined if the file or folder does not exist; every other error is thrown. */
export function ignoreMissing(error: unknown): undefined {
  if ((error as { readonly code?: unknown }).code === "ENOENT") return undefined;
  throw error;
}
