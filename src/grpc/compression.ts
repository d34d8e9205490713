/** gzip, for peers that ask for it. Bounded: a small message may decompress to a large one. */
import { gunzip, gzip } from "node:zlib";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { grpcCode, GrpcError } from "./status.ts";

export const encodingsTaken = "identity,gzip";
/** Smaller messages would only grow. */
export const gzipBytesMin = 1_024;

/** Whether answers to a request with these headers are compressed: clients that compress get compressed answers. */
export function packsFor(headers: HeaderList): boolean {
  return headers.get("grpc-encoding") === "gzip" && (headers.get("grpc-accept-encoding")?.includes("gzip") ?? false);
}

export function unpack(bytes: Buffer, sizeMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    gunzip(bytes, { maxOutputLength: Math.max(1, sizeMax) }, (error, unpacked) => {
      if (!error) return resolve(unpacked);
      const tooLarge = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      reject(
        tooLarge
          ? new GrpcError(
              grpcCode.resourceExhausted,
              `a message decompresses to more than the ${sizeMax} bytes accepted here`,
            )
          : new GrpcError(grpcCode.internal, "a message that says it is gzip is not"),
      );
    });
  });
}

export function pack(bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    gzip(bytes, { level: 1 }, (error, packed) => (error ? reject(error) : resolve(packed)));
  });
}
