import { isFault } from "#base/fault.ts";

/** The medium cannot give the bytes back, or the file ends too early: as good as gone. */
export const isBadSector = (error: unknown): boolean =>
  codes.has(String(isFault(error) ? error.facts["errno"] : (error as NodeJS.ErrnoException).code));

const codes: ReadonlySet<string> = new Set(["EIO", "ENODATA"]);
