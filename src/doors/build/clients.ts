/**
 * What clients expect beyond the protocol. One table; the first matching row counts. Tools are recognised by the name
 * in their request metadata, or by how their user agent begins.
 */

export type ClientHabits = {
  /** What `committed_size` means to it after a complete upload of compressed bytes. */
  readonly compressedCommit: "compressed" | "plain" | "minus-one";
};

type Line = ClientHabits & { readonly tool: RegExp };

const table: readonly Line[] = [
  // Bazel up to 8 compares with the bytes that it sent; later versions accept anything.
  { tool: /^bazel/i, compressedCommit: "compressed" },
  { tool: /^buck2?/i, compressedCommit: "compressed" },
  // The Go SDK, and Siso, compare with the size in the digest.
  { tool: /^(siso|reclient|rbe|reproxy|remote-apis-sdks)/i, compressedCommit: "plain" },
];

const otherwise: ClientHabits = { compressedCommit: "compressed" };

export const habitsOf = (toolName: string | undefined, userAgent: string | undefined): ClientHabits =>
  table.find(({ tool }) => (toolName ? tool.test(toolName) : userAgent !== undefined && tool.test(userAgent))) ??
  otherwise;
