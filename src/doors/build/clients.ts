/**
 * What clients expect that the protocol does not say. One table; the first line that fits counts. Tools are told by the
 * name that they give in their request metadata, or by how their user agent begins.
 */

export type ClientHabits = {
  /** What `committed_size` means to it after a whole upload of compressed bytes. */
  readonly compressedCommit: "compressed" | "plain" | "minus-one";
};

type Line = ClientHabits & { readonly tool: RegExp };

const table: readonly Line[] = [
  // Bazel up to 8 compares with the bytes that it sent; later ones take anything.
  { tool: /^bazel/i, compressedCommit: "compressed" },
  { tool: /^buck2?/i, compressedCommit: "compressed" },
  // The Go SDK, and Siso, compare with the size in the digest.
  { tool: /^(siso|reclient|rbe|reproxy|remote-apis-sdks)/i, compressedCommit: "plain" },
];

const otherwise: ClientHabits = { compressedCommit: "compressed" };

export const habitsOf = (toolName: string | undefined, userAgent: string | undefined): ClientHabits =>
  table.find(({ tool }) => (toolName ? tool.test(toolName) : userAgent !== undefined && tool.test(userAgent))) ??
  otherwise;
