/** The last line that a command printed, where its result has one. */
export function lastLineOf(payload: string): string | undefined {
  try {
    const { tail } = JSON.parse(payload) as { tail?: unknown };
    const last = typeof tail === "string" ? tail.trimEnd().split("\n").at(-1) : undefined;
    return last ? last.slice(0, 200) : undefined;
  } catch {
    return undefined;
  }
}
