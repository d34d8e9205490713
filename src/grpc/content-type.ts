/** `application/grpc`, with or without a subtype that says protobuf, with or without parameters. */
export function isGrpcType(type: string | undefined): boolean {
  if (type === undefined || !type.startsWith("application/grpc")) return false;
  if (type.length === "application/grpc".length) return true;
  return /^application\/grpc(\+proto)?\s*(;|$)/.test(type);
}
