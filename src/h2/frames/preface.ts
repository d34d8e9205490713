/** Recognises HTTP/2 with prior knowledge by a connection's first bytes. */
import { clientPreface } from "./frame.ts";

/** "more" while the bytes could still become either; in practice HTTP/1.1 differs by its second byte at the latest. */
export function looksLikeHttp2(first: Uint8Array): "yes" | "no" | "more" {
  const count = Math.min(first.length, clientPreface.length);
  for (let i = 0; i < count; i += 1) if (first[i] !== clientPreface[i]) return "no";
  return count === clientPreface.length ? "yes" : "more";
}
