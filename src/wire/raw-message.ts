/** Messages that are kept and sent as the bytes they came in: unknown fields are not lost. */
import {
  ActionResult,
  Digest,
  GetTreeResponse,
  ResultsCachePolicy,
  UpdateActionResultRequest,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Message } from "./message.ts";

/** Replaces a generated message whose bytes are at hand. */
export const rawMessage = (typeName: string): Message<Uint8Array> => ({
  typeName,
  write(bytes, to) {
    to.reserve(bytes.length);
    to.bytes.set(bytes, to.pos);
    to.pos += bytes.length;
  },
  read(from, end) {
    const bytes = from.bytes.subarray(from.pos, end);
    from.pos = end;
    return bytes;
  },
});

export const rawActionResult: Message<Uint8Array> = rawMessage(ActionResult.typeName);

export type RawUpdate = Omit<UpdateActionResultRequest, "actionResult"> & {
  /** A view of the request's bytes; undefined if the field is missing. */
  readonly actionResult: Uint8Array | undefined;
};

const updateTags = { instanceName: 10, actionDigest: 18, actionResult: 26, policy: 34, digestFunction: 40 } as const;

export const rawUpdateRequest: Message<RawUpdate> = {
  typeName: UpdateActionResultRequest.typeName,
  write({ instanceName, actionDigest, actionResult, resultsCachePolicy, digestFunction }, to) {
    if (instanceName !== "") to.string(updateTags.instanceName, instanceName);
    if (actionDigest) {
      const start = to.open(updateTags.actionDigest);
      Digest.write(actionDigest, to);
      to.close(start);
    }
    if (actionResult) to.data(updateTags.actionResult, actionResult);
    if (resultsCachePolicy) {
      const start = to.open(updateTags.policy);
      ResultsCachePolicy.write(resultsCachePolicy, to);
      to.close(start);
    }
    if (digestFunction !== 0) to.int32(updateTags.digestFunction, digestFunction);
  },
  read(from, end) {
    let instanceName = "";
    let actionDigest: Digest | undefined;
    let actionResult: Uint8Array | undefined;
    let digestFunction = 0;
    while (from.pos < end) {
      const tag = from.tag();
      if (tag === updateTags.instanceName) instanceName = from.string();
      else if (tag === updateTags.actionDigest) {
        const stop = from.enter();
        actionDigest = Digest.read(from, stop, actionDigest);
        from.leave(stop);
      } else if (tag === updateTags.actionResult) {
        // A field given twice merges into one message: concatenating the bytes does just that.
        const more = from.data();
        actionResult = actionResult ? Buffer.concat([actionResult, more]) : more;
      } else if (tag === updateTags.digestFunction) digestFunction = from.int32();
      else from.skip(tag);
    }
    return { instanceName, actionDigest, actionResult, resultsCachePolicy: undefined, digestFunction };
  },
};

export type RawTreePage = { readonly directories: readonly Uint8Array[]; readonly nextPageToken: string };

const treeTags = { directories: 10, nextPageToken: 18 } as const;

/** Clients compute the digest of a directory: encoding it again could change its bytes, and so its digest. */
export const rawTreePage: Message<RawTreePage> = {
  typeName: GetTreeResponse.typeName,
  write({ directories, nextPageToken }, to) {
    for (const bytes of directories) to.data(treeTags.directories, bytes);
    if (nextPageToken !== "") to.string(treeTags.nextPageToken, nextPageToken);
  },
  read(from, end) {
    const directories: Uint8Array[] = [];
    let nextPageToken = "";
    while (from.pos < end) {
      const tag = from.tag();
      if (tag === treeTags.directories) {
        from.count();
        directories.push(from.data());
      } else if (tag === treeTags.nextPageToken) nextPageToken = from.string();
      else from.skip(tag);
    }
    return { directories, nextPageToken };
  },
};
