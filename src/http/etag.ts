/** Entity tags (RFC 9110, sections 8.8.3 and 13). */
import { createHash } from "node:crypto";

/** Strong: equal tags mean equal bytes. */
export const etagOf = (bytes: Uint8Array | string): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;

/** Whether a header such as If-None-Match names this tag. The comparison is weak, as that header wants it. */
export function namesEtag(header: string | null, etag: string): boolean {
  if (header === null) return false;
  if (header.trim() === "*") return true;
  return header.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}
