/** Values of `-bin` fields: base64, with or without padding, several of them separated by commas. */

export const isBinaryName = (name: string): boolean => name.endsWith("-bin");

/** Without padding, as most peers send it; all peers read both. */
export const encodeBinary = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64").replace(/=+$/, "");

/** The first value; undefined if it is not base64. */
export function decodeBinary(text: string): Buffer | undefined {
  const comma = text.indexOf(",");
  const one = comma === -1 ? text : text.slice(0, comma);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(one)) return undefined;
  return Buffer.from(one, "base64");
}

/** Names that belong to the protocol: no caller and no handler may set them. */
export function isReserved(name: string): boolean {
  return (
    name.startsWith(":") ||
    name.startsWith("grpc-") ||
    name === "te" ||
    name === "content-type" ||
    name === "content-length" ||
    name === "user-agent" ||
    name === "connection"
  );
}

export type Metadata = readonly (readonly [name: string, value: string | Uint8Array])[];

/** As header fields. Fields that may not be sent are left out: metadata is optional, and not worth a failed call. */
export function metadataFields(metadata: Metadata): [string, string][] {
  return metadata.flatMap(([given, value]): [string, string][] => {
    const name = given.toLowerCase();
    if (isReserved(name) || !/^[0-9a-z_.-]+$/.test(name)) return [];
    if (typeof value !== "string") return isBinaryName(name) ? [[name, encodeBinary(value)]] : [];
    if (isBinaryName(name)) return [[name, encodeBinary(Buffer.from(value, "utf8"))]];
    return /^[ -~]*$/.test(value) ? [[name, value.trim()]] : [];
  });
}
