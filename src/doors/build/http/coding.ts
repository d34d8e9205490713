/** The coding of a response: what the client accepts, zstd before gzip. */
export type Coding = "identity" | "zstd" | "gzip";

export function chosenCoding(acceptEncoding: string | null, sizeBytes: number): Coding {
  if (acceptEncoding === null || sizeBytes < worthwhileBytes) return "identity";
  const wanted = new Map<string, number>();
  for (const item of acceptEncoding.toLowerCase().split(",").slice(0, 20)) {
    const [name = "", ...parameters] = item.split(";").map((word) => word.trim());
    const quality = parameters.find((word) => word.startsWith("q="))?.slice(2);
    wanted.set(name, quality === undefined ? 1 : Number(quality) || 0);
  }
  const [zstd, gzip] = [wanted.get("zstd") ?? 0, wanted.get("gzip") ?? 0];
  if (zstd > 0 && zstd >= gzip) return "zstd";
  return gzip > 0 ? "gzip" : "identity";
}

/** Smaller bodies gain nothing. */
const worthwhileBytes = 512;
