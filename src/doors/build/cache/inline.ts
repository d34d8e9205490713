/** Small outputs inside the result, for clients that ask for them: each saves one round trip. */
import type { DigestFunction } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type {
  ActionResult,
  Digest as WireDigest,
  GetActionResultRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { digestOfWire } from "#doors/build/digests.ts";
import { messageBytesMax } from "#doors/build/settings.ts";

type Wanted = Pick<GetActionResultRequest, "inlineStdout" | "inlineStderr" | "inlineOutputFiles">;

export const wantsInline = (wanted: Wanted): boolean =>
  wanted.inlineStdout || wanted.inlineStderr || wanted.inlineOutputFiles.length > 0;

/** Digests stay, so that outputs that did not fit can be read. Standard output comes first, then the files in order. */
export async function inlined(
  result: ActionResult,
  wanted: Wanted,
  { fn, blobs, resultBytes }: { readonly fn: DigestFunction; readonly blobs: BlobStore; readonly resultBytes: number },
): Promise<ActionResult> {
  // Leaves space for tags and lengths, and for clients that count their headers too.
  let leftBytes = messageBytesMax - resultBytes - 64 * 1024;
  const take = async (digest: WireDigest | undefined): Promise<Uint8Array | undefined> => {
    if (!digest || digest.sizeBytes === 0 || digest.sizeBytes > leftBytes) return undefined;
    leftBytes -= digest.sizeBytes;
    return await wholeBlob(blobs, digestOfWire(digest, fn, "a digest"));
  };
  const stdoutRaw = (wanted.inlineStdout ? await take(result.stdoutDigest) : undefined) ?? result.stdoutRaw;
  const stderrRaw = (wanted.inlineStderr ? await take(result.stderrDigest) : undefined) ?? result.stderrRaw;
  const paths = new Set(wanted.inlineOutputFiles);
  const outputFiles: ActionResult["outputFiles"][number][] = [];
  for (const file of result.outputFiles) {
    const contents = paths.has(file.path) ? await take(file.digest) : undefined;
    outputFiles.push(contents ? { ...file, contents } : file);
  }
  return { ...result, stdoutRaw, stderrRaw, outputFiles };
}
