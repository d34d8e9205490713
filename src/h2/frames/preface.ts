/** Tells HTTP/2 with prior knowledge from everything else by a connection's first bytes. */
import { clientPreface } from "./frame.ts";

/** "more" while the bytes could still become either; HTTP/1.1 differs by its second byte at the latest, in practice. */
export function looksLikeHttp2(first: Uint8Array): "yes" | "no" | "more" {
  const count = Math.min(first.length, clientPreface.length);
  for (let i = 0; i < count; i += 1) if (first[i] !== clientPreface[i]) return "no";
  return count === clientPreface.length ? "yes" : "more";
}
