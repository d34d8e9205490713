// Generated from proto/build/bazel/remote/execution/v2/remote_execution.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";
import { sortedEntries } from "#wire/writer.ts";
import { SemVer } from "#wire/generated/build/bazel/semver/semver.ts";
import { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { Any } from "#wire/generated/google/protobuf/any.ts";
import { Duration } from "#wire/generated/google/protobuf/duration.ts";
import { Timestamp } from "#wire/generated/google/protobuf/timestamp.ts";
import { UInt32Value } from "#wire/generated/google/protobuf/wrappers.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";

/** The ways. */
export const Compressor_Value = {
  /** Not at all. */
  IDENTITY: 0,
  /** Zstandard. */
  ZSTD: 1,
  /** Raw deflate. */
  DEFLATE: 2,
  /** Brotli. */
  BROTLI: 3,
} as const;

/** The functions. */
export const DigestFunction_Value = {
  /** Derived from the length of the hash. */
  UNKNOWN: 0,
  /** SHA-256. */
  SHA256: 1,
  /** SHA-1. */
  SHA1: 2,
  /** MD5. */
  MD5: 3,
  /** Microsoft's VSO-Hash. */
  VSO: 4,
  /** SHA-384. */
  SHA384: 5,
  /** SHA-512. */
  SHA512: 6,
  /** Murmur3, 128 bits, for x64. */
  MURMUR3: 7,
  /** SHA-256 in a tree. */
  SHA256TREE: 8,
  /** BLAKE3. */
  BLAKE3: 9,
  /** SHA-1 as Git names its objects, with their kind and length before them. */
  GITSHA1: 10,
} as const;

/** The ways. */
export const ChunkingFunction_Value = {
  /** Any. */
  UNKNOWN: 0,
  /** FastCDC in its version of 2020. */
  FAST_CDC_2020: 1,
  /** RepMaxCDC. */
  REP_MAX_CDC: 2,
} as const;

/** What a directory that was made is brought back as. */
export const Command_OutputDirectoryFormat = {
  /** One Tree. */
  TREE_ONLY: 0,
  /** A Directory for each. */
  DIRECTORY_ONLY: 1,
  /** Both. */
  TREE_AND_DIRECTORY: 2,
} as const;

/** The stages. */
export const ExecutionStage_Value = {
  /** Unknown. */
  UNKNOWN: 0,
  /** Perhaps it has been run before. */
  CACHE_CHECK: 1,
  /** It waits. */
  QUEUED: 2,
  /** It runs. */
  EXECUTING: 3,
  /** It is done. */
  COMPLETED: 4,
} as const;

/** The ways. */
export const SymlinkAbsolutePathStrategy_Value = {
  /** Not specified. */
  UNKNOWN: 0,
  /** They are refused. */
  DISALLOWED: 1,
  /** They stay as they are. */
  ALLOWED: 2,
} as const;

/** The name of a blob: what its bytes hash to, and how many there are. */
export type Digest = {
  /** In lower-case hexadecimal. */
  readonly hash: string;
  /** The number of bytes. */
  readonly sizeBytes: number;
};

export const Digest: Message<Digest> = {
  typeName: "build.bazel.remote.execution.v2.Digest",
  write(message, to) {
    if (message.hash !== "") {
      to.string(10, message.hash);
    }
    if (message.sizeBytes !== 0) {
      to.int64(16, message.sizeBytes);
    }
  },
  read(from, end, before) {
    let hash = before === undefined ? "" : before.hash;
    let sizeBytes = before === undefined ? 0 : before.sizeBytes;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          hash = from.string();
          break;
        }
        case 16: {
          sizeBytes = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { hash, sizeBytes };
  },
};

/** How blobs may be compressed on their way. */
export type Compressor = Readonly<Record<never, never>>;

export const Compressor: Message<Compressor> = {
  typeName: "build.bazel.remote.execution.v2.Compressor",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** The functions that digests are made with. */
export type DigestFunction = Readonly<Record<never, never>>;

export const DigestFunction: Message<DigestFunction> = {
  typeName: "build.bazel.remote.execution.v2.DigestFunction",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** How blobs are cut into chunks. */
export type ChunkingFunction = Readonly<Record<never, never>>;

export const ChunkingFunction: Message<ChunkingFunction> = {
  typeName: "build.bazel.remote.execution.v2.ChunkingFunction",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** Which of these are missing? */
export type FindMissingBlobsRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The blobs. */
  readonly blobDigests: readonly Digest[];
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const FindMissingBlobsRequest: Message<FindMissingBlobsRequest> = {
  typeName: "build.bazel.remote.execution.v2.FindMissingBlobsRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    for (const one of message.blobDigests) {
      const start = to.open(18);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(24, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    const blobDigests: Digest[] = before === undefined ? [] : (before.blobDigests as Digest[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          blobDigests.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 24: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, blobDigests, digestFunction };
  },
};

/** These are missing. */
export type FindMissingBlobsResponse = {
  /** The blobs that are not there. */
  readonly missingBlobDigests: readonly Digest[];
};

export const FindMissingBlobsResponse: Message<FindMissingBlobsResponse> = {
  typeName: "build.bazel.remote.execution.v2.FindMissingBlobsResponse",
  write(message, to) {
    for (const one of message.missingBlobDigests) {
      const start = to.open(18);
      Digest.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const missingBlobDigests: Digest[] = before === undefined ? [] : (before.missingBlobDigests as Digest[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 18: {
          const stop = from.enter();
          missingBlobDigests.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { missingBlobDigests };
  },
};

/** Stores many small blobs. */
export type BatchUpdateBlobsRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The blobs. */
  readonly requests: readonly BatchUpdateBlobsRequest_Request[];
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const BatchUpdateBlobsRequest: Message<BatchUpdateBlobsRequest> = {
  typeName: "build.bazel.remote.execution.v2.BatchUpdateBlobsRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    for (const one of message.requests) {
      const start = to.open(18, one.data.length);
      BatchUpdateBlobsRequest_Request.write(one, to);
      to.close(start, one.data.length);
    }
    if (message.digestFunction !== 0) {
      to.int32(40, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    const requests: BatchUpdateBlobsRequest_Request[] = before === undefined ? [] : (before.requests as BatchUpdateBlobsRequest_Request[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          requests.push(BatchUpdateBlobsRequest_Request.read(from, stop));
          from.leave(stop);
          break;
        }
        case 40: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, requests, digestFunction };
  },
};

/** One blob. */
export type BatchUpdateBlobsRequest_Request = {
  /** Its name. */
  readonly digest?: Digest | undefined;
  /** Its bytes. */
  readonly data: Uint8Array;
  /** How the bytes are compressed; the digest is that of the plain ones. */
  readonly compressor: number;
};

export const BatchUpdateBlobsRequest_Request: Message<BatchUpdateBlobsRequest_Request> = {
  typeName: "build.bazel.remote.execution.v2.BatchUpdateBlobsRequest.Request",
  write(message, to) {
    if (message.digest !== undefined) {
      const start = to.open(10);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.data.length > 0) {
      to.data(18, message.data);
    }
    if (message.compressor !== 0) {
      to.int32(24, message.compressor);
    }
  },
  read(from, end, before) {
    let digest = before?.digest;
    let data = before === undefined ? noBytes : before.data;
    let compressor = before === undefined ? 0 : before.compressor;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 18: {
          data = from.data();
          break;
        }
        case 24: {
          compressor = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digest, data, compressor };
  },
};

/** What became of them. */
export type BatchUpdateBlobsResponse = {
  /** One for each blob that was sent. */
  readonly responses: readonly BatchUpdateBlobsResponse_Response[];
};

export const BatchUpdateBlobsResponse: Message<BatchUpdateBlobsResponse> = {
  typeName: "build.bazel.remote.execution.v2.BatchUpdateBlobsResponse",
  write(message, to) {
    for (const one of message.responses) {
      const start = to.open(10);
      BatchUpdateBlobsResponse_Response.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const responses: BatchUpdateBlobsResponse_Response[] = before === undefined ? [] : (before.responses as BatchUpdateBlobsResponse_Response[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          responses.push(BatchUpdateBlobsResponse_Response.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { responses };
  },
};

/** One blob. */
export type BatchUpdateBlobsResponse_Response = {
  /** Its name. */
  readonly digest?: Digest | undefined;
  /** Whether it is there now. */
  readonly status?: Status | undefined;
};

export const BatchUpdateBlobsResponse_Response: Message<BatchUpdateBlobsResponse_Response> = {
  typeName: "build.bazel.remote.execution.v2.BatchUpdateBlobsResponse.Response",
  write(message, to) {
    if (message.digest !== undefined) {
      const start = to.open(10);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.status !== undefined) {
      const start = to.open(18);
      Status.write(message.status, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let digest = before?.digest;
    let status = before?.status;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          status = Status.read(from, stop, status);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digest, status };
  },
};

/** Asks for many small blobs. */
export type BatchReadBlobsRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The blobs. */
  readonly digests: readonly Digest[];
  /** What the client can decompress; never compressed is always accepted. */
  readonly acceptableCompressors: readonly number[];
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const BatchReadBlobsRequest: Message<BatchReadBlobsRequest> = {
  typeName: "build.bazel.remote.execution.v2.BatchReadBlobsRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    for (const one of message.digests) {
      const start = to.open(18);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.acceptableCompressors.length > 0) {
      const start = to.open(26);
      for (const one of message.acceptableCompressors) to.plainInt32(one);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(32, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    const digests: Digest[] = before === undefined ? [] : (before.digests as Digest[]);
    const acceptableCompressors: number[] = before === undefined ? [] : (before.acceptableCompressors as number[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          digests.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            acceptableCompressors.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 24: {
          from.count();
          acceptableCompressors.push(from.int32());
          break;
        }
        case 32: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, digests, acceptableCompressors, digestFunction };
  },
};

/** Many small blobs. */
export type BatchReadBlobsResponse = {
  /** One for each blob that was asked for. */
  readonly responses: readonly BatchReadBlobsResponse_Response[];
};

export const BatchReadBlobsResponse: Message<BatchReadBlobsResponse> = {
  typeName: "build.bazel.remote.execution.v2.BatchReadBlobsResponse",
  write(message, to) {
    for (const one of message.responses) {
      const start = to.open(10, one.data.length);
      BatchReadBlobsResponse_Response.write(one, to);
      to.close(start, one.data.length);
    }
  },
  read(from, end, before) {
    const responses: BatchReadBlobsResponse_Response[] = before === undefined ? [] : (before.responses as BatchReadBlobsResponse_Response[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          responses.push(BatchReadBlobsResponse_Response.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { responses };
  },
};

/** One blob. */
export type BatchReadBlobsResponse_Response = {
  /** Its name. */
  readonly digest?: Digest | undefined;
  /** Its bytes. */
  readonly data: Uint8Array;
  /** Why there are no bytes, where there are none. */
  readonly status?: Status | undefined;
  /** How the bytes are compressed. */
  readonly compressor: number;
};

export const BatchReadBlobsResponse_Response: Message<BatchReadBlobsResponse_Response> = {
  typeName: "build.bazel.remote.execution.v2.BatchReadBlobsResponse.Response",
  write(message, to) {
    if (message.digest !== undefined) {
      const start = to.open(10);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.data.length > 0) {
      to.data(18, message.data);
    }
    if (message.status !== undefined) {
      const start = to.open(26);
      Status.write(message.status, to);
      to.close(start);
    }
    if (message.compressor !== 0) {
      to.int32(32, message.compressor);
    }
  },
  read(from, end, before) {
    let digest = before?.digest;
    let data = before === undefined ? noBytes : before.data;
    let status = before?.status;
    let compressor = before === undefined ? 0 : before.compressor;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 18: {
          data = from.data();
          break;
        }
        case 26: {
          const stop = from.enter();
          status = Status.read(from, stop, status);
          from.leave(stop);
          break;
        }
        case 32: {
          compressor = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digest, data, status, compressor };
  },
};

/** The content of a directory: what a tree of inputs or outputs is made of. */
export type Directory = {
  /** Its files, sorted by name. */
  readonly files: readonly FileNode[];
  /** Its directories, sorted by name. */
  readonly directories: readonly DirectoryNode[];
  /** Its symbolic links, sorted by name. */
  readonly symlinks: readonly SymlinkNode[];
  /** Properties of the directory itself. */
  readonly nodeProperties?: NodeProperties | undefined;
};

export const Directory: Message<Directory> = {
  typeName: "build.bazel.remote.execution.v2.Directory",
  write(message, to) {
    for (const one of message.files) {
      const start = to.open(10);
      FileNode.write(one, to);
      to.close(start);
    }
    for (const one of message.directories) {
      const start = to.open(18);
      DirectoryNode.write(one, to);
      to.close(start);
    }
    for (const one of message.symlinks) {
      const start = to.open(26);
      SymlinkNode.write(one, to);
      to.close(start);
    }
    if (message.nodeProperties !== undefined) {
      const start = to.open(42);
      NodeProperties.write(message.nodeProperties, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const files: FileNode[] = before === undefined ? [] : (before.files as FileNode[]);
    const directories: DirectoryNode[] = before === undefined ? [] : (before.directories as DirectoryNode[]);
    const symlinks: SymlinkNode[] = before === undefined ? [] : (before.symlinks as SymlinkNode[]);
    let nodeProperties = before?.nodeProperties;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          files.push(FileNode.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          directories.push(DirectoryNode.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          symlinks.push(SymlinkNode.read(from, stop));
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          nodeProperties = NodeProperties.read(from, stop, nodeProperties);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { files, directories, symlinks, nodeProperties };
  },
};

/** A property that a server must know how to set. */
export type NodeProperty = {
  /** Its name. */
  readonly name: string;
  /** Its value. */
  readonly value: string;
};

export const NodeProperty: Message<NodeProperty> = {
  typeName: "build.bazel.remote.execution.v2.NodeProperty",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.value !== "") {
      to.string(18, message.value);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** Properties of a file, directory or link. */
export type NodeProperties = {
  /** All others, sorted by name. */
  readonly properties: readonly NodeProperty[];
  /** When it was last changed. */
  readonly mtime?: Timestamp | undefined;
  /** Its mode, as Unix counts it. */
  readonly unixMode?: UInt32Value | undefined;
};

export const NodeProperties: Message<NodeProperties> = {
  typeName: "build.bazel.remote.execution.v2.NodeProperties",
  write(message, to) {
    for (const one of message.properties) {
      const start = to.open(10);
      NodeProperty.write(one, to);
      to.close(start);
    }
    if (message.mtime !== undefined) {
      const start = to.open(18);
      Timestamp.write(message.mtime, to);
      to.close(start);
    }
    if (message.unixMode !== undefined) {
      const start = to.open(26);
      UInt32Value.write(message.unixMode, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const properties: NodeProperty[] = before === undefined ? [] : (before.properties as NodeProperty[]);
    let mtime = before?.mtime;
    let unixMode = before?.unixMode;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          properties.push(NodeProperty.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          mtime = Timestamp.read(from, stop, mtime);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          unixMode = UInt32Value.read(from, stop, unixMode);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { properties, mtime, unixMode };
  },
};

/** A file in a directory. */
export type FileNode = {
  /** Its name, without a slash. */
  readonly name: string;
  /** Its bytes. */
  readonly digest?: Digest | undefined;
  /** Whether it may be executed. */
  readonly isExecutable: boolean;
  /** Its properties. */
  readonly nodeProperties?: NodeProperties | undefined;
};

export const FileNode: Message<FileNode> = {
  typeName: "build.bazel.remote.execution.v2.FileNode",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.digest !== undefined) {
      const start = to.open(18);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.isExecutable) {
      to.bool(32, message.isExecutable);
    }
    if (message.nodeProperties !== undefined) {
      const start = to.open(50);
      NodeProperties.write(message.nodeProperties, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let digest = before?.digest;
    let isExecutable = before === undefined ? false : before.isExecutable;
    let nodeProperties = before?.nodeProperties;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 32: {
          isExecutable = from.bool();
          break;
        }
        case 50: {
          const stop = from.enter();
          nodeProperties = NodeProperties.read(from, stop, nodeProperties);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, digest, isExecutable, nodeProperties };
  },
};

/** A directory in a directory. */
export type DirectoryNode = {
  /** Its name, without a slash. */
  readonly name: string;
  /** The Directory message as a blob. */
  readonly digest?: Digest | undefined;
};

export const DirectoryNode: Message<DirectoryNode> = {
  typeName: "build.bazel.remote.execution.v2.DirectoryNode",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.digest !== undefined) {
      const start = to.open(18);
      Digest.write(message.digest, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let digest = before?.digest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, digest };
  },
};

/** A symbolic link in a directory. */
export type SymlinkNode = {
  /** Its name, without a slash. */
  readonly name: string;
  /** Where it points. */
  readonly target: string;
  /** Its properties. */
  readonly nodeProperties?: NodeProperties | undefined;
};

export const SymlinkNode: Message<SymlinkNode> = {
  typeName: "build.bazel.remote.execution.v2.SymlinkNode",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.target !== "") {
      to.string(18, message.target);
    }
    if (message.nodeProperties !== undefined) {
      const start = to.open(34);
      NodeProperties.write(message.nodeProperties, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let target = before === undefined ? "" : before.target;
    let nodeProperties = before?.nodeProperties;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          target = from.string();
          break;
        }
        case 34: {
          const stop = from.enter();
          nodeProperties = NodeProperties.read(from, stop, nodeProperties);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, target, nodeProperties };
  },
};

/** A directory with everything below it in one message. */
export type Tree = {
  /** The top. */
  readonly root?: Directory | undefined;
  /** Every directory below it, each once. */
  readonly children: readonly Directory[];
};

export const Tree: Message<Tree> = {
  typeName: "build.bazel.remote.execution.v2.Tree",
  write(message, to) {
    if (message.root !== undefined) {
      const start = to.open(10);
      Directory.write(message.root, to);
      to.close(start);
    }
    for (const one of message.children) {
      const start = to.open(18);
      Directory.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let root = before?.root;
    const children: Directory[] = before === undefined ? [] : (before.children as Directory[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          root = Directory.read(from, stop, root);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          children.push(Directory.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { root, children };
  },
};

/** Asks for a directory and those below it. */
export type GetTreeRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The Directory at the top. */
  readonly rootDigest?: Digest | undefined;
  /** How many directories a page has at most. */
  readonly pageSize: number;
  /** Where to go on. */
  readonly pageToken: string;
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const GetTreeRequest: Message<GetTreeRequest> = {
  typeName: "build.bazel.remote.execution.v2.GetTreeRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.rootDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.rootDigest, to);
      to.close(start);
    }
    if (message.pageSize !== 0) {
      to.int32(24, message.pageSize);
    }
    if (message.pageToken !== "") {
      to.string(34, message.pageToken);
    }
    if (message.digestFunction !== 0) {
      to.int32(40, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let rootDigest = before?.rootDigest;
    let pageSize = before === undefined ? 0 : before.pageSize;
    let pageToken = before === undefined ? "" : before.pageToken;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          rootDigest = Digest.read(from, stop, rootDigest);
          from.leave(stop);
          break;
        }
        case 24: {
          pageSize = from.int32();
          break;
        }
        case 34: {
          pageToken = from.string();
          break;
        }
        case 40: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, rootDigest, pageSize, pageToken, digestFunction };
  },
};

/** Some directories of a tree. */
export type GetTreeResponse = {
  /** These, each once. */
  readonly directories: readonly Directory[];
  /** Where to go on; empty when there is nothing more. */
  readonly nextPageToken: string;
};

export const GetTreeResponse: Message<GetTreeResponse> = {
  typeName: "build.bazel.remote.execution.v2.GetTreeResponse",
  write(message, to) {
    for (const one of message.directories) {
      const start = to.open(10);
      Directory.write(one, to);
      to.close(start);
    }
    if (message.nextPageToken !== "") {
      to.string(18, message.nextPageToken);
    }
  },
  read(from, end, before) {
    const directories: Directory[] = before === undefined ? [] : (before.directories as Directory[]);
    let nextPageToken = before === undefined ? "" : before.nextPageToken;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          directories.push(Directory.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          nextPageToken = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { directories, nextPageToken };
  },
};

/** Asks for the chunks of a blob. */
export type SplitBlobRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The blob. */
  readonly blobDigest?: Digest | undefined;
  /** The function that the digests are made with. */
  readonly digestFunction: number;
  /** How the client would like it cut. */
  readonly chunkingFunction: number;
};

export const SplitBlobRequest: Message<SplitBlobRequest> = {
  typeName: "build.bazel.remote.execution.v2.SplitBlobRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.blobDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.blobDigest, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(24, message.digestFunction);
    }
    if (message.chunkingFunction !== 0) {
      to.int32(32, message.chunkingFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let blobDigest = before?.blobDigest;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    let chunkingFunction = before === undefined ? 0 : before.chunkingFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          blobDigest = Digest.read(from, stop, blobDigest);
          from.leave(stop);
          break;
        }
        case 24: {
          digestFunction = from.int32();
          break;
        }
        case 32: {
          chunkingFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, blobDigest, digestFunction, chunkingFunction };
  },
};

/** The chunks of a blob. */
export type SplitBlobResponse = {
  /** In their order. */
  readonly chunkDigests: readonly Digest[];
  /** How it was cut. */
  readonly chunkingFunction: number;
};

export const SplitBlobResponse: Message<SplitBlobResponse> = {
  typeName: "build.bazel.remote.execution.v2.SplitBlobResponse",
  write(message, to) {
    for (const one of message.chunkDigests) {
      const start = to.open(10);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.chunkingFunction !== 0) {
      to.int32(16, message.chunkingFunction);
    }
  },
  read(from, end, before) {
    const chunkDigests: Digest[] = before === undefined ? [] : (before.chunkDigests as Digest[]);
    let chunkingFunction = before === undefined ? 0 : before.chunkingFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          chunkDigests.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 16: {
          chunkingFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { chunkDigests, chunkingFunction };
  },
};

/** Makes a blob of chunks. */
export type SpliceBlobRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** What it must be in the end. */
  readonly blobDigest?: Digest | undefined;
  /** The chunks in their order. */
  readonly chunkDigests: readonly Digest[];
  /** The function that the digests were made with. */
  readonly digestFunction: number;
  /** How it was cut. */
  readonly chunkingFunction: number;
};

export const SpliceBlobRequest: Message<SpliceBlobRequest> = {
  typeName: "build.bazel.remote.execution.v2.SpliceBlobRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.blobDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.blobDigest, to);
      to.close(start);
    }
    for (const one of message.chunkDigests) {
      const start = to.open(26);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(32, message.digestFunction);
    }
    if (message.chunkingFunction !== 0) {
      to.int32(40, message.chunkingFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let blobDigest = before?.blobDigest;
    const chunkDigests: Digest[] = before === undefined ? [] : (before.chunkDigests as Digest[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    let chunkingFunction = before === undefined ? 0 : before.chunkingFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          blobDigest = Digest.read(from, stop, blobDigest);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          chunkDigests.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 32: {
          digestFunction = from.int32();
          break;
        }
        case 40: {
          chunkingFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, blobDigest, chunkDigests, digestFunction, chunkingFunction };
  },
};

/** It is there now. */
export type SpliceBlobResponse = {
  /** The blob. */
  readonly blobDigest?: Digest | undefined;
};

export const SpliceBlobResponse: Message<SpliceBlobResponse> = {
  typeName: "build.bazel.remote.execution.v2.SpliceBlobResponse",
  write(message, to) {
    if (message.blobDigest !== undefined) {
      const start = to.open(10);
      Digest.write(message.blobDigest, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let blobDigest = before?.blobDigest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          blobDigest = Digest.read(from, stop, blobDigest);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { blobDigest };
  },
};

/** Something to run: all that its result depends on. Its digest is what results are known by. */
export type Action = {
  /** The Command. */
  readonly commandDigest?: Digest | undefined;
  /** The Directory that it is run in. */
  readonly inputRootDigest?: Digest | undefined;
  /** How long it may take. */
  readonly timeout?: Duration | undefined;
  /** Its result is to be neither kept nor shared. */
  readonly doNotCache: boolean;
  /** Anything: tells apart actions that are the same otherwise. */
  readonly salt: Uint8Array;
  /** What it must be run on. */
  readonly platform?: Platform | undefined;
};

export const Action: Message<Action> = {
  typeName: "build.bazel.remote.execution.v2.Action",
  write(message, to) {
    if (message.commandDigest !== undefined) {
      const start = to.open(10);
      Digest.write(message.commandDigest, to);
      to.close(start);
    }
    if (message.inputRootDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.inputRootDigest, to);
      to.close(start);
    }
    if (message.timeout !== undefined) {
      const start = to.open(50);
      Duration.write(message.timeout, to);
      to.close(start);
    }
    if (message.doNotCache) {
      to.bool(56, message.doNotCache);
    }
    if (message.salt.length > 0) {
      to.data(74, message.salt);
    }
    if (message.platform !== undefined) {
      const start = to.open(82);
      Platform.write(message.platform, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let commandDigest = before?.commandDigest;
    let inputRootDigest = before?.inputRootDigest;
    let timeout = before?.timeout;
    let doNotCache = before === undefined ? false : before.doNotCache;
    let salt = before === undefined ? noBytes : before.salt;
    let platform = before?.platform;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          commandDigest = Digest.read(from, stop, commandDigest);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          inputRootDigest = Digest.read(from, stop, inputRootDigest);
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          timeout = Duration.read(from, stop, timeout);
          from.leave(stop);
          break;
        }
        case 56: {
          doNotCache = from.bool();
          break;
        }
        case 74: {
          salt = from.data();
          break;
        }
        case 82: {
          const stop = from.enter();
          platform = Platform.read(from, stop, platform);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { commandDigest, inputRootDigest, timeout, doNotCache, salt, platform };
  },
};

/** What to run and what to bring back. */
export type Command = {
  /** The program and its arguments. */
  readonly arguments: readonly string[];
  /** Its environment, sorted by name. */
  readonly environmentVariables: readonly Command_EnvironmentVariable[];
  /** Files to bring back, as clients before 2.1 say it. */
  readonly outputFiles: readonly string[];
  /** Directories to bring back, as clients before 2.1 say it. */
  readonly outputDirectories: readonly string[];
  /** What it must be run on, as clients before 2.2 say it. */
  readonly platform?: Platform | undefined;
  /** Where in the input root it is run. */
  readonly workingDirectory: string;
  /** What to bring back, whatever it turns out to be. */
  readonly outputPaths: readonly string[];
  /** Which properties of outputs are asked for. */
  readonly outputNodeProperties: readonly string[];
  /** What directories are brought back as. */
  readonly outputDirectoryFormat: number;
};

export const Command: Message<Command> = {
  typeName: "build.bazel.remote.execution.v2.Command",
  write(message, to) {
    for (const one of message.arguments) {
      to.string(10, one);
    }
    for (const one of message.environmentVariables) {
      const start = to.open(18);
      Command_EnvironmentVariable.write(one, to);
      to.close(start);
    }
    for (const one of message.outputFiles) {
      to.string(26, one);
    }
    for (const one of message.outputDirectories) {
      to.string(34, one);
    }
    if (message.platform !== undefined) {
      const start = to.open(42);
      Platform.write(message.platform, to);
      to.close(start);
    }
    if (message.workingDirectory !== "") {
      to.string(50, message.workingDirectory);
    }
    for (const one of message.outputPaths) {
      to.string(58, one);
    }
    for (const one of message.outputNodeProperties) {
      to.string(66, one);
    }
    if (message.outputDirectoryFormat !== 0) {
      to.int32(72, message.outputDirectoryFormat);
    }
  },
  read(from, end, before) {
    const arguments_: string[] = before === undefined ? [] : (before.arguments as string[]);
    const environmentVariables: Command_EnvironmentVariable[] = before === undefined ? [] : (before.environmentVariables as Command_EnvironmentVariable[]);
    const outputFiles: string[] = before === undefined ? [] : (before.outputFiles as string[]);
    const outputDirectories: string[] = before === undefined ? [] : (before.outputDirectories as string[]);
    let platform = before?.platform;
    let workingDirectory = before === undefined ? "" : before.workingDirectory;
    const outputPaths: string[] = before === undefined ? [] : (before.outputPaths as string[]);
    const outputNodeProperties: string[] = before === undefined ? [] : (before.outputNodeProperties as string[]);
    let outputDirectoryFormat = before === undefined ? 0 : before.outputDirectoryFormat;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          arguments_.push(from.string());
          break;
        }
        case 18: {
          const stop = from.enter();
          environmentVariables.push(Command_EnvironmentVariable.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          from.count();
          outputFiles.push(from.string());
          break;
        }
        case 34: {
          from.count();
          outputDirectories.push(from.string());
          break;
        }
        case 42: {
          const stop = from.enter();
          platform = Platform.read(from, stop, platform);
          from.leave(stop);
          break;
        }
        case 50: {
          workingDirectory = from.string();
          break;
        }
        case 58: {
          from.count();
          outputPaths.push(from.string());
          break;
        }
        case 66: {
          from.count();
          outputNodeProperties.push(from.string());
          break;
        }
        case 72: {
          outputDirectoryFormat = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { arguments: arguments_, environmentVariables, outputFiles, outputDirectories, platform, workingDirectory, outputPaths, outputNodeProperties, outputDirectoryFormat };
  },
};

/** One variable. */
export type Command_EnvironmentVariable = {
  /** Its name. */
  readonly name: string;
  /** Its value. */
  readonly value: string;
};

export const Command_EnvironmentVariable: Message<Command_EnvironmentVariable> = {
  typeName: "build.bazel.remote.execution.v2.Command.EnvironmentVariable",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.value !== "") {
      to.string(18, message.value);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** What a machine must be like. */
export type Platform = {
  /** All demands, sorted by name and value. */
  readonly properties: readonly Platform_Property[];
};

export const Platform: Message<Platform> = {
  typeName: "build.bazel.remote.execution.v2.Platform",
  write(message, to) {
    for (const one of message.properties) {
      const start = to.open(10);
      Platform_Property.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const properties: Platform_Property[] = before === undefined ? [] : (before.properties as Platform_Property[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          properties.push(Platform_Property.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { properties };
  },
};

/** One demand. */
export type Platform_Property = {
  /** Of what. */
  readonly name: string;
  /** What it must be. */
  readonly value: string;
};

export const Platform_Property: Message<Platform_Property> = {
  typeName: "build.bazel.remote.execution.v2.Platform.Property",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.value !== "") {
      to.string(18, message.value);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** When and where an action was run. */
export type ExecutedActionMetadata = {
  /** The machine. */
  readonly worker: string;
  /** When it began to wait. */
  readonly queuedTimestamp?: Timestamp | undefined;
  /** When the worker took it. */
  readonly workerStartTimestamp?: Timestamp | undefined;
  /** When the worker was done with it. */
  readonly workerCompletedTimestamp?: Timestamp | undefined;
  /** When inputs began to be fetched. */
  readonly inputFetchStartTimestamp?: Timestamp | undefined;
  /** When all inputs were there. */
  readonly inputFetchCompletedTimestamp?: Timestamp | undefined;
  /** When the command began. */
  readonly executionStartTimestamp?: Timestamp | undefined;
  /** When the command ended. */
  readonly executionCompletedTimestamp?: Timestamp | undefined;
  /** When outputs began to be stored. */
  readonly outputUploadStartTimestamp?: Timestamp | undefined;
  /** When all outputs were stored. */
  readonly outputUploadCompletedTimestamp?: Timestamp | undefined;
  /** Whatever else there is to say. */
  readonly auxiliaryMetadata: readonly Any[];
  /** How long it ran, by the clock that its timeout is counted on. */
  readonly virtualExecutionDuration?: Duration | undefined;
};

export const ExecutedActionMetadata: Message<ExecutedActionMetadata> = {
  typeName: "build.bazel.remote.execution.v2.ExecutedActionMetadata",
  write(message, to) {
    if (message.worker !== "") {
      to.string(10, message.worker);
    }
    if (message.queuedTimestamp !== undefined) {
      const start = to.open(18);
      Timestamp.write(message.queuedTimestamp, to);
      to.close(start);
    }
    if (message.workerStartTimestamp !== undefined) {
      const start = to.open(26);
      Timestamp.write(message.workerStartTimestamp, to);
      to.close(start);
    }
    if (message.workerCompletedTimestamp !== undefined) {
      const start = to.open(34);
      Timestamp.write(message.workerCompletedTimestamp, to);
      to.close(start);
    }
    if (message.inputFetchStartTimestamp !== undefined) {
      const start = to.open(42);
      Timestamp.write(message.inputFetchStartTimestamp, to);
      to.close(start);
    }
    if (message.inputFetchCompletedTimestamp !== undefined) {
      const start = to.open(50);
      Timestamp.write(message.inputFetchCompletedTimestamp, to);
      to.close(start);
    }
    if (message.executionStartTimestamp !== undefined) {
      const start = to.open(58);
      Timestamp.write(message.executionStartTimestamp, to);
      to.close(start);
    }
    if (message.executionCompletedTimestamp !== undefined) {
      const start = to.open(66);
      Timestamp.write(message.executionCompletedTimestamp, to);
      to.close(start);
    }
    if (message.outputUploadStartTimestamp !== undefined) {
      const start = to.open(74);
      Timestamp.write(message.outputUploadStartTimestamp, to);
      to.close(start);
    }
    if (message.outputUploadCompletedTimestamp !== undefined) {
      const start = to.open(82);
      Timestamp.write(message.outputUploadCompletedTimestamp, to);
      to.close(start);
    }
    for (const one of message.auxiliaryMetadata) {
      const start = to.open(90, one.value.length);
      Any.write(one, to);
      to.close(start, one.value.length);
    }
    if (message.virtualExecutionDuration !== undefined) {
      const start = to.open(98);
      Duration.write(message.virtualExecutionDuration, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let worker = before === undefined ? "" : before.worker;
    let queuedTimestamp = before?.queuedTimestamp;
    let workerStartTimestamp = before?.workerStartTimestamp;
    let workerCompletedTimestamp = before?.workerCompletedTimestamp;
    let inputFetchStartTimestamp = before?.inputFetchStartTimestamp;
    let inputFetchCompletedTimestamp = before?.inputFetchCompletedTimestamp;
    let executionStartTimestamp = before?.executionStartTimestamp;
    let executionCompletedTimestamp = before?.executionCompletedTimestamp;
    let outputUploadStartTimestamp = before?.outputUploadStartTimestamp;
    let outputUploadCompletedTimestamp = before?.outputUploadCompletedTimestamp;
    const auxiliaryMetadata: Any[] = before === undefined ? [] : (before.auxiliaryMetadata as Any[]);
    let virtualExecutionDuration = before?.virtualExecutionDuration;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          worker = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          queuedTimestamp = Timestamp.read(from, stop, queuedTimestamp);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          workerStartTimestamp = Timestamp.read(from, stop, workerStartTimestamp);
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          workerCompletedTimestamp = Timestamp.read(from, stop, workerCompletedTimestamp);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          inputFetchStartTimestamp = Timestamp.read(from, stop, inputFetchStartTimestamp);
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          inputFetchCompletedTimestamp = Timestamp.read(from, stop, inputFetchCompletedTimestamp);
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          executionStartTimestamp = Timestamp.read(from, stop, executionStartTimestamp);
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          executionCompletedTimestamp = Timestamp.read(from, stop, executionCompletedTimestamp);
          from.leave(stop);
          break;
        }
        case 74: {
          const stop = from.enter();
          outputUploadStartTimestamp = Timestamp.read(from, stop, outputUploadStartTimestamp);
          from.leave(stop);
          break;
        }
        case 82: {
          const stop = from.enter();
          outputUploadCompletedTimestamp = Timestamp.read(from, stop, outputUploadCompletedTimestamp);
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          auxiliaryMetadata.push(Any.read(from, stop));
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          virtualExecutionDuration = Duration.read(from, stop, virtualExecutionDuration);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { worker, queuedTimestamp, workerStartTimestamp, workerCompletedTimestamp, inputFetchStartTimestamp, inputFetchCompletedTimestamp, executionStartTimestamp, executionCompletedTimestamp, outputUploadStartTimestamp, outputUploadCompletedTimestamp, auxiliaryMetadata, virtualExecutionDuration };
  },
};

/** What running an action came to. */
export type ActionResult = {
  /** The files that it made. */
  readonly outputFiles: readonly OutputFile[];
  /** The directories that it made. */
  readonly outputDirectories: readonly OutputDirectory[];
  /** How the command ended. */
  readonly exitCode: number;
  /** What it wrote to its standard output, where that is small and was asked for. */
  readonly stdoutRaw: Uint8Array;
  /** What it wrote to its standard output. */
  readonly stdoutDigest?: Digest | undefined;
  /** What it wrote to its standard error, where that is small and was asked for. */
  readonly stderrRaw: Uint8Array;
  /** What it wrote to its standard error. */
  readonly stderrDigest?: Digest | undefined;
  /** When and where it was run. */
  readonly executionMetadata?: ExecutedActionMetadata | undefined;
  /** Links to files, as clients before 2.1 know them. */
  readonly outputFileSymlinks: readonly OutputSymlink[];
  /** Links to directories, as clients before 2.1 know them. */
  readonly outputDirectorySymlinks: readonly OutputSymlink[];
  /** The links that it made. */
  readonly outputSymlinks: readonly OutputSymlink[];
};

export const ActionResult: Message<ActionResult> = {
  typeName: "build.bazel.remote.execution.v2.ActionResult",
  write(message, to) {
    for (const one of message.outputFiles) {
      const start = to.open(18, one.contents.length);
      OutputFile.write(one, to);
      to.close(start, one.contents.length);
    }
    for (const one of message.outputDirectories) {
      const start = to.open(26);
      OutputDirectory.write(one, to);
      to.close(start);
    }
    if (message.exitCode !== 0) {
      to.int32(32, message.exitCode);
    }
    if (message.stdoutRaw.length > 0) {
      to.data(42, message.stdoutRaw);
    }
    if (message.stdoutDigest !== undefined) {
      const start = to.open(50);
      Digest.write(message.stdoutDigest, to);
      to.close(start);
    }
    if (message.stderrRaw.length > 0) {
      to.data(58, message.stderrRaw);
    }
    if (message.stderrDigest !== undefined) {
      const start = to.open(66);
      Digest.write(message.stderrDigest, to);
      to.close(start);
    }
    if (message.executionMetadata !== undefined) {
      const start = to.open(74);
      ExecutedActionMetadata.write(message.executionMetadata, to);
      to.close(start);
    }
    for (const one of message.outputFileSymlinks) {
      const start = to.open(82);
      OutputSymlink.write(one, to);
      to.close(start);
    }
    for (const one of message.outputDirectorySymlinks) {
      const start = to.open(90);
      OutputSymlink.write(one, to);
      to.close(start);
    }
    for (const one of message.outputSymlinks) {
      const start = to.open(98);
      OutputSymlink.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const outputFiles: OutputFile[] = before === undefined ? [] : (before.outputFiles as OutputFile[]);
    const outputDirectories: OutputDirectory[] = before === undefined ? [] : (before.outputDirectories as OutputDirectory[]);
    let exitCode = before === undefined ? 0 : before.exitCode;
    let stdoutRaw = before === undefined ? noBytes : before.stdoutRaw;
    let stdoutDigest = before?.stdoutDigest;
    let stderrRaw = before === undefined ? noBytes : before.stderrRaw;
    let stderrDigest = before?.stderrDigest;
    let executionMetadata = before?.executionMetadata;
    const outputFileSymlinks: OutputSymlink[] = before === undefined ? [] : (before.outputFileSymlinks as OutputSymlink[]);
    const outputDirectorySymlinks: OutputSymlink[] = before === undefined ? [] : (before.outputDirectorySymlinks as OutputSymlink[]);
    const outputSymlinks: OutputSymlink[] = before === undefined ? [] : (before.outputSymlinks as OutputSymlink[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 18: {
          const stop = from.enter();
          outputFiles.push(OutputFile.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          outputDirectories.push(OutputDirectory.read(from, stop));
          from.leave(stop);
          break;
        }
        case 32: {
          exitCode = from.int32();
          break;
        }
        case 42: {
          stdoutRaw = from.data();
          break;
        }
        case 50: {
          const stop = from.enter();
          stdoutDigest = Digest.read(from, stop, stdoutDigest);
          from.leave(stop);
          break;
        }
        case 58: {
          stderrRaw = from.data();
          break;
        }
        case 66: {
          const stop = from.enter();
          stderrDigest = Digest.read(from, stop, stderrDigest);
          from.leave(stop);
          break;
        }
        case 74: {
          const stop = from.enter();
          executionMetadata = ExecutedActionMetadata.read(from, stop, executionMetadata);
          from.leave(stop);
          break;
        }
        case 82: {
          const stop = from.enter();
          outputFileSymlinks.push(OutputSymlink.read(from, stop));
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          outputDirectorySymlinks.push(OutputSymlink.read(from, stop));
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          outputSymlinks.push(OutputSymlink.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { outputFiles, outputDirectories, exitCode, stdoutRaw, stdoutDigest, stderrRaw, stderrDigest, executionMetadata, outputFileSymlinks, outputDirectorySymlinks, outputSymlinks };
  },
};

/** A file that an action made. */
export type OutputFile = {
  /** Where, below the working directory. */
  readonly path: string;
  /** Its bytes. */
  readonly digest?: Digest | undefined;
  /** Whether it may be executed. */
  readonly isExecutable: boolean;
  /** The bytes themselves, where they are few and were asked for. */
  readonly contents: Uint8Array;
  /** Its properties. */
  readonly nodeProperties?: NodeProperties | undefined;
};

export const OutputFile: Message<OutputFile> = {
  typeName: "build.bazel.remote.execution.v2.OutputFile",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.digest !== undefined) {
      const start = to.open(18);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.isExecutable) {
      to.bool(32, message.isExecutable);
    }
    if (message.contents.length > 0) {
      to.data(42, message.contents);
    }
    if (message.nodeProperties !== undefined) {
      const start = to.open(58);
      NodeProperties.write(message.nodeProperties, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let digest = before?.digest;
    let isExecutable = before === undefined ? false : before.isExecutable;
    let contents = before === undefined ? noBytes : before.contents;
    let nodeProperties = before?.nodeProperties;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 32: {
          isExecutable = from.bool();
          break;
        }
        case 42: {
          contents = from.data();
          break;
        }
        case 58: {
          const stop = from.enter();
          nodeProperties = NodeProperties.read(from, stop, nodeProperties);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, digest, isExecutable, contents, nodeProperties };
  },
};

/** A directory that an action made. */
export type OutputDirectory = {
  /** Where, below the working directory. */
  readonly path: string;
  /** All of it, as a Tree. */
  readonly treeDigest?: Digest | undefined;
  /** In that Tree every directory comes before those that it has. */
  readonly isTopologicallySorted: boolean;
  /** All of it, as the Directory at its top. */
  readonly rootDirectoryDigest?: Digest | undefined;
};

export const OutputDirectory: Message<OutputDirectory> = {
  typeName: "build.bazel.remote.execution.v2.OutputDirectory",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.treeDigest !== undefined) {
      const start = to.open(26);
      Digest.write(message.treeDigest, to);
      to.close(start);
    }
    if (message.isTopologicallySorted) {
      to.bool(32, message.isTopologicallySorted);
    }
    if (message.rootDirectoryDigest !== undefined) {
      const start = to.open(42);
      Digest.write(message.rootDirectoryDigest, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let treeDigest = before?.treeDigest;
    let isTopologicallySorted = before === undefined ? false : before.isTopologicallySorted;
    let rootDirectoryDigest = before?.rootDirectoryDigest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          treeDigest = Digest.read(from, stop, treeDigest);
          from.leave(stop);
          break;
        }
        case 32: {
          isTopologicallySorted = from.bool();
          break;
        }
        case 42: {
          const stop = from.enter();
          rootDirectoryDigest = Digest.read(from, stop, rootDirectoryDigest);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, treeDigest, isTopologicallySorted, rootDirectoryDigest };
  },
};

/** A symbolic link that an action made. */
export type OutputSymlink = {
  /** Where, below the working directory. */
  readonly path: string;
  /** Where it points. */
  readonly target: string;
  /** Its properties. */
  readonly nodeProperties?: NodeProperties | undefined;
};

export const OutputSymlink: Message<OutputSymlink> = {
  typeName: "build.bazel.remote.execution.v2.OutputSymlink",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.target !== "") {
      to.string(18, message.target);
    }
    if (message.nodeProperties !== undefined) {
      const start = to.open(34);
      NodeProperties.write(message.nodeProperties, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let target = before === undefined ? "" : before.target;
    let nodeProperties = before?.nodeProperties;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 18: {
          target = from.string();
          break;
        }
        case 34: {
          const stop = from.enter();
          nodeProperties = NodeProperties.read(from, stop, nodeProperties);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, target, nodeProperties };
  },
};

/** How soon an action is to be run. */
export type ExecutionPolicy = {
  /** The lower, the sooner. */
  readonly priority: number;
};

export const ExecutionPolicy: Message<ExecutionPolicy> = {
  typeName: "build.bazel.remote.execution.v2.ExecutionPolicy",
  write(message, to) {
    if (message.priority !== 0) {
      to.int32(8, message.priority);
    }
  },
  read(from, end, before) {
    let priority = before === undefined ? 0 : before.priority;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          priority = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { priority };
  },
};

/** How long a result is worth keeping. */
export type ResultsCachePolicy = {
  /** The lower, the longer. */
  readonly priority: number;
};

export const ResultsCachePolicy: Message<ResultsCachePolicy> = {
  typeName: "build.bazel.remote.execution.v2.ResultsCachePolicy",
  write(message, to) {
    if (message.priority !== 0) {
      to.int32(8, message.priority);
    }
  },
  read(from, end, before) {
    let priority = before === undefined ? 0 : before.priority;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          priority = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { priority };
  },
};

/** Runs an action. */
export type ExecuteRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** Whatever the cache says. */
  readonly skipCacheLookup: boolean;
  /** The Action. */
  readonly actionDigest?: Digest | undefined;
  /** How soon. */
  readonly executionPolicy?: ExecutionPolicy | undefined;
  /** How long its result is worth keeping. */
  readonly resultsCachePolicy?: ResultsCachePolicy | undefined;
  /** The function that the digests were made with. */
  readonly digestFunction: number;
  /** With its standard output in the result. */
  readonly inlineStdout: boolean;
  /** With its standard error in the result. */
  readonly inlineStderr: boolean;
  /** With the bytes of these files in the result. */
  readonly inlineOutputFiles: readonly string[];
};

export const ExecuteRequest: Message<ExecuteRequest> = {
  typeName: "build.bazel.remote.execution.v2.ExecuteRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.skipCacheLookup) {
      to.bool(24, message.skipCacheLookup);
    }
    if (message.actionDigest !== undefined) {
      const start = to.open(50);
      Digest.write(message.actionDigest, to);
      to.close(start);
    }
    if (message.executionPolicy !== undefined) {
      const start = to.open(58);
      ExecutionPolicy.write(message.executionPolicy, to);
      to.close(start);
    }
    if (message.resultsCachePolicy !== undefined) {
      const start = to.open(66);
      ResultsCachePolicy.write(message.resultsCachePolicy, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(72, message.digestFunction);
    }
    if (message.inlineStdout) {
      to.bool(80, message.inlineStdout);
    }
    if (message.inlineStderr) {
      to.bool(88, message.inlineStderr);
    }
    for (const one of message.inlineOutputFiles) {
      to.string(98, one);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let skipCacheLookup = before === undefined ? false : before.skipCacheLookup;
    let actionDigest = before?.actionDigest;
    let executionPolicy = before?.executionPolicy;
    let resultsCachePolicy = before?.resultsCachePolicy;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    let inlineStdout = before === undefined ? false : before.inlineStdout;
    let inlineStderr = before === undefined ? false : before.inlineStderr;
    const inlineOutputFiles: string[] = before === undefined ? [] : (before.inlineOutputFiles as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 24: {
          skipCacheLookup = from.bool();
          break;
        }
        case 50: {
          const stop = from.enter();
          actionDigest = Digest.read(from, stop, actionDigest);
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          executionPolicy = ExecutionPolicy.read(from, stop, executionPolicy);
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          resultsCachePolicy = ResultsCachePolicy.read(from, stop, resultsCachePolicy);
          from.leave(stop);
          break;
        }
        case 72: {
          digestFunction = from.int32();
          break;
        }
        case 80: {
          inlineStdout = from.bool();
          break;
        }
        case 88: {
          inlineStderr = from.bool();
          break;
        }
        case 98: {
          from.count();
          inlineOutputFiles.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, skipCacheLookup, actionDigest, executionPolicy, resultsCachePolicy, digestFunction, inlineStdout, inlineStderr, inlineOutputFiles };
  },
};

/** What a server wrote down while an action ran. */
export type LogFile = {
  /** Its bytes. */
  readonly digest?: Digest | undefined;
  /** Whether people can read it. */
  readonly humanReadable: boolean;
};

export const LogFile: Message<LogFile> = {
  typeName: "build.bazel.remote.execution.v2.LogFile",
  write(message, to) {
    if (message.digest !== undefined) {
      const start = to.open(10);
      Digest.write(message.digest, to);
      to.close(start);
    }
    if (message.humanReadable) {
      to.bool(16, message.humanReadable);
    }
  },
  read(from, end, before) {
    let digest = before?.digest;
    let humanReadable = before === undefined ? false : before.humanReadable;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          digest = Digest.read(from, stop, digest);
          from.leave(stop);
          break;
        }
        case 16: {
          humanReadable = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digest, humanReadable };
  },
};

/** The end of an execution. */
export type ExecuteResponse = {
  /** What it came to. */
  readonly result?: ActionResult | undefined;
  /** It had been run before. */
  readonly cachedResult: boolean;
  /** Why there is no result, or only a part of one. */
  readonly status?: Status | undefined;
  /** What the server wrote down, by name. */
  readonly serverLogs: ReadonlyMap<string, LogFile>;
  /** A message for the client. */
  readonly message: string;
};

export const ExecuteResponse: Message<ExecuteResponse> = {
  typeName: "build.bazel.remote.execution.v2.ExecuteResponse",
  write(message, to) {
    if (message.result !== undefined) {
      const start = to.open(10, message.result.stdoutRaw.length);
      ActionResult.write(message.result, to);
      to.close(start, message.result.stdoutRaw.length);
    }
    if (message.cachedResult) {
      to.bool(16, message.cachedResult);
    }
    if (message.status !== undefined) {
      const start = to.open(26);
      Status.write(message.status, to);
      to.close(start);
    }
    if (message.serverLogs.size > 0) {
      for (const [key, one] of sortedEntries(message.serverLogs)) {
        const entry = to.open(34);
        to.string(10, key);
        const start = to.open(18);
        LogFile.write(one, to);
        to.close(start);
        to.close(entry);
      }
    }
    if (message.message !== "") {
      to.string(42, message.message);
    }
  },
  read(from, end, before) {
    let result = before?.result;
    let cachedResult = before === undefined ? false : before.cachedResult;
    let status = before?.status;
    const serverLogs: Map<string, LogFile> = before === undefined ? new Map<string, LogFile>() : (before.serverLogs as Map<string, LogFile>);
    let message = before === undefined ? "" : before.message;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          result = ActionResult.read(from, stop, result);
          from.leave(stop);
          break;
        }
        case 16: {
          cachedResult = from.bool();
          break;
        }
        case 26: {
          const stop = from.enter();
          status = Status.read(from, stop, status);
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          let key = "";
          let value: LogFile | undefined = undefined;
          while (from.pos < stop) {
            const inner = from.tag();
            if (inner === 10) key = from.string();
            else if (inner === 18) {
              const valueStop = from.enter();
              value = LogFile.read(from, valueStop, value);
              from.leave(valueStop);
            } else from.skip(inner);
          }
          from.leave(stop);
          serverLogs.set(key, value ?? LogFile.read(from, from.pos));
          break;
        }
        case 42: {
          message = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { result, cachedResult, status, serverLogs, message };
  },
};

/** How far an execution is. */
export type ExecutionStage = Readonly<Record<never, never>>;

export const ExecutionStage: Message<ExecutionStage> = {
  typeName: "build.bazel.remote.execution.v2.ExecutionStage",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** How far an execution is, in its operation. */
export type ExecuteOperationMetadata = {
  /** How far. */
  readonly stage: number;
  /** The Action. */
  readonly actionDigest?: Digest | undefined;
  /** Where its standard output can be read while it is written. */
  readonly stdoutStreamName: string;
  /** Where its standard error can be read while it is written. */
  readonly stderrStreamName: string;
  /** When and where it is run, as far as that is known. */
  readonly partialExecutionMetadata?: ExecutedActionMetadata | undefined;
  /** The function that the digest was made with. */
  readonly digestFunction: number;
};

export const ExecuteOperationMetadata: Message<ExecuteOperationMetadata> = {
  typeName: "build.bazel.remote.execution.v2.ExecuteOperationMetadata",
  write(message, to) {
    if (message.stage !== 0) {
      to.int32(8, message.stage);
    }
    if (message.actionDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.actionDigest, to);
      to.close(start);
    }
    if (message.stdoutStreamName !== "") {
      to.string(26, message.stdoutStreamName);
    }
    if (message.stderrStreamName !== "") {
      to.string(34, message.stderrStreamName);
    }
    if (message.partialExecutionMetadata !== undefined) {
      const start = to.open(42);
      ExecutedActionMetadata.write(message.partialExecutionMetadata, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? 0 : before.stage;
    let actionDigest = before?.actionDigest;
    let stdoutStreamName = before === undefined ? "" : before.stdoutStreamName;
    let stderrStreamName = before === undefined ? "" : before.stderrStreamName;
    let partialExecutionMetadata = before?.partialExecutionMetadata;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          stage = from.int32();
          break;
        }
        case 18: {
          const stop = from.enter();
          actionDigest = Digest.read(from, stop, actionDigest);
          from.leave(stop);
          break;
        }
        case 26: {
          stdoutStreamName = from.string();
          break;
        }
        case 34: {
          stderrStreamName = from.string();
          break;
        }
        case 42: {
          const stop = from.enter();
          partialExecutionMetadata = ExecutedActionMetadata.read(from, stop, partialExecutionMetadata);
          from.leave(stop);
          break;
        }
        case 48: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, actionDigest, stdoutStreamName, stderrStreamName, partialExecutionMetadata, digestFunction };
  },
};

/** Listens to an execution. */
export type WaitExecutionRequest = {
  /** The operation. */
  readonly name: string;
};

export const WaitExecutionRequest: Message<WaitExecutionRequest> = {
  typeName: "build.bazel.remote.execution.v2.WaitExecutionRequest",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name };
  },
};

/** Asks for the result of an action. */
export type GetActionResultRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The Action, which itself need not be there. */
  readonly actionDigest?: Digest | undefined;
  /** With its standard output. */
  readonly inlineStdout: boolean;
  /** With its standard error. */
  readonly inlineStderr: boolean;
  /** With the bytes of these files. */
  readonly inlineOutputFiles: readonly string[];
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const GetActionResultRequest: Message<GetActionResultRequest> = {
  typeName: "build.bazel.remote.execution.v2.GetActionResultRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.actionDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.actionDigest, to);
      to.close(start);
    }
    if (message.inlineStdout) {
      to.bool(24, message.inlineStdout);
    }
    if (message.inlineStderr) {
      to.bool(32, message.inlineStderr);
    }
    for (const one of message.inlineOutputFiles) {
      to.string(42, one);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let actionDigest = before?.actionDigest;
    let inlineStdout = before === undefined ? false : before.inlineStdout;
    let inlineStderr = before === undefined ? false : before.inlineStderr;
    const inlineOutputFiles: string[] = before === undefined ? [] : (before.inlineOutputFiles as string[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          actionDigest = Digest.read(from, stop, actionDigest);
          from.leave(stop);
          break;
        }
        case 24: {
          inlineStdout = from.bool();
          break;
        }
        case 32: {
          inlineStderr = from.bool();
          break;
        }
        case 42: {
          from.count();
          inlineOutputFiles.push(from.string());
          break;
        }
        case 48: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, actionDigest, inlineStdout, inlineStderr, inlineOutputFiles, digestFunction };
  },
};

/** Says what the result of an action is. */
export type UpdateActionResultRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** The Action. */
  readonly actionDigest?: Digest | undefined;
  /** Its result. */
  readonly actionResult?: ActionResult | undefined;
  /** How long it is worth keeping. */
  readonly resultsCachePolicy?: ResultsCachePolicy | undefined;
  /** The function that the digests were made with. */
  readonly digestFunction: number;
};

export const UpdateActionResultRequest: Message<UpdateActionResultRequest> = {
  typeName: "build.bazel.remote.execution.v2.UpdateActionResultRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.actionDigest !== undefined) {
      const start = to.open(18);
      Digest.write(message.actionDigest, to);
      to.close(start);
    }
    if (message.actionResult !== undefined) {
      const start = to.open(26, message.actionResult.stdoutRaw.length);
      ActionResult.write(message.actionResult, to);
      to.close(start, message.actionResult.stdoutRaw.length);
    }
    if (message.resultsCachePolicy !== undefined) {
      const start = to.open(34);
      ResultsCachePolicy.write(message.resultsCachePolicy, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(40, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let actionDigest = before?.actionDigest;
    let actionResult = before?.actionResult;
    let resultsCachePolicy = before?.resultsCachePolicy;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          actionDigest = Digest.read(from, stop, actionDigest);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          actionResult = ActionResult.read(from, stop, actionResult);
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          resultsCachePolicy = ResultsCachePolicy.read(from, stop, resultsCachePolicy);
          from.leave(stop);
          break;
        }
        case 40: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, actionDigest, actionResult, resultsCachePolicy, digestFunction };
  },
};

/** Asks what the server can do. */
export type GetCapabilitiesRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
};

export const GetCapabilitiesRequest: Message<GetCapabilitiesRequest> = {
  typeName: "build.bazel.remote.execution.v2.GetCapabilitiesRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName };
  },
};

/** What the server can do. */
export type ServerCapabilities = {
  /** As a cache. */
  readonly cacheCapabilities?: CacheCapabilities | undefined;
  /** With actions. */
  readonly executionCapabilities?: ExecutionCapabilities | undefined;
  /** The oldest version that still works, although it is deprecated. */
  readonly deprecatedApiVersion?: SemVer | undefined;
  /** The oldest version that it speaks. */
  readonly lowApiVersion?: SemVer | undefined;
  /** The newest version that it speaks. */
  readonly highApiVersion?: SemVer | undefined;
};

export const ServerCapabilities: Message<ServerCapabilities> = {
  typeName: "build.bazel.remote.execution.v2.ServerCapabilities",
  write(message, to) {
    if (message.cacheCapabilities !== undefined) {
      const start = to.open(10);
      CacheCapabilities.write(message.cacheCapabilities, to);
      to.close(start);
    }
    if (message.executionCapabilities !== undefined) {
      const start = to.open(18);
      ExecutionCapabilities.write(message.executionCapabilities, to);
      to.close(start);
    }
    if (message.deprecatedApiVersion !== undefined) {
      const start = to.open(26);
      SemVer.write(message.deprecatedApiVersion, to);
      to.close(start);
    }
    if (message.lowApiVersion !== undefined) {
      const start = to.open(34);
      SemVer.write(message.lowApiVersion, to);
      to.close(start);
    }
    if (message.highApiVersion !== undefined) {
      const start = to.open(42);
      SemVer.write(message.highApiVersion, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let cacheCapabilities = before?.cacheCapabilities;
    let executionCapabilities = before?.executionCapabilities;
    let deprecatedApiVersion = before?.deprecatedApiVersion;
    let lowApiVersion = before?.lowApiVersion;
    let highApiVersion = before?.highApiVersion;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          cacheCapabilities = CacheCapabilities.read(from, stop, cacheCapabilities);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          executionCapabilities = ExecutionCapabilities.read(from, stop, executionCapabilities);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          deprecatedApiVersion = SemVer.read(from, stop, deprecatedApiVersion);
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          lowApiVersion = SemVer.read(from, stop, lowApiVersion);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          highApiVersion = SemVer.read(from, stop, highApiVersion);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { cacheCapabilities, executionCapabilities, deprecatedApiVersion, lowApiVersion, highApiVersion };
  },
};

/** Whether results may be given to the cache. */
export type ActionCacheUpdateCapabilities = {
  /** By this caller. */
  readonly updateEnabled: boolean;
};

export const ActionCacheUpdateCapabilities: Message<ActionCacheUpdateCapabilities> = {
  typeName: "build.bazel.remote.execution.v2.ActionCacheUpdateCapabilities",
  write(message, to) {
    if (message.updateEnabled) {
      to.bool(8, message.updateEnabled);
    }
  },
  read(from, end, before) {
    let updateEnabled = before === undefined ? false : before.updateEnabled;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          updateEnabled = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { updateEnabled };
  },
};

/** Which priorities there are. */
export type PriorityCapabilities = {
  /** All of them. */
  readonly priorities: readonly PriorityCapabilities_PriorityRange[];
};

export const PriorityCapabilities: Message<PriorityCapabilities> = {
  typeName: "build.bazel.remote.execution.v2.PriorityCapabilities",
  write(message, to) {
    for (const one of message.priorities) {
      const start = to.open(10);
      PriorityCapabilities_PriorityRange.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const priorities: PriorityCapabilities_PriorityRange[] = before === undefined ? [] : (before.priorities as PriorityCapabilities_PriorityRange[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          priorities.push(PriorityCapabilities_PriorityRange.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { priorities };
  },
};

/** Some of them. */
export type PriorityCapabilities_PriorityRange = {
  /** The lowest number. */
  readonly minPriority: number;
  /** The highest number. */
  readonly maxPriority: number;
};

export const PriorityCapabilities_PriorityRange: Message<PriorityCapabilities_PriorityRange> = {
  typeName: "build.bazel.remote.execution.v2.PriorityCapabilities.PriorityRange",
  write(message, to) {
    if (message.minPriority !== 0) {
      to.int32(8, message.minPriority);
    }
    if (message.maxPriority !== 0) {
      to.int32(16, message.maxPriority);
    }
  },
  read(from, end, before) {
    let minPriority = before === undefined ? 0 : before.minPriority;
    let maxPriority = before === undefined ? 0 : before.maxPriority;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          minPriority = from.int32();
          break;
        }
        case 16: {
          maxPriority = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { minPriority, maxPriority };
  },
};

/** What becomes of links to absolute paths. */
export type SymlinkAbsolutePathStrategy = Readonly<Record<never, never>>;

export const SymlinkAbsolutePathStrategy: Message<SymlinkAbsolutePathStrategy> = {
  typeName: "build.bazel.remote.execution.v2.SymlinkAbsolutePathStrategy",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** What the server can do as a cache. */
export type CacheCapabilities = {
  /** The functions that digests may be made with. */
  readonly digestFunctions: readonly number[];
  /** Whether this caller may give it results. */
  readonly actionCacheUpdateCapabilities?: ActionCacheUpdateCapabilities | undefined;
  /** The priorities of results. */
  readonly cachePriorityCapabilities?: PriorityCapabilities | undefined;
  /** How many bytes the blobs of a batch may have together; 0: no limit but that of a message. */
  readonly maxBatchTotalSizeBytes: number;
  /** What becomes of links to absolute paths. */
  readonly symlinkAbsolutePathStrategy: number;
  /** How streams may be compressed. */
  readonly supportedCompressors: readonly number[];
  /** How blobs in a batch may be compressed. */
  readonly supportedBatchUpdateCompressors: readonly number[];
  /** How many bytes a blob may have; 0: not specified. */
  readonly maxCasBlobSizeBytes: number;
  /** SplitBlob is there. */
  readonly splitBlobSupport: boolean;
  /** SpliceBlob is there. */
  readonly spliceBlobSupport: boolean;
  /** How it cuts by FastCDC 2020, where it does. */
  readonly fastCdc2020Params?: FastCdc2020Params | undefined;
  /** How it cuts by RepMaxCDC, where it does. */
  readonly repMaxCdcParams?: RepMaxCdcParams | undefined;
};

export const CacheCapabilities: Message<CacheCapabilities> = {
  typeName: "build.bazel.remote.execution.v2.CacheCapabilities",
  write(message, to) {
    if (message.digestFunctions.length > 0) {
      const start = to.open(10);
      for (const one of message.digestFunctions) to.plainInt32(one);
      to.close(start);
    }
    if (message.actionCacheUpdateCapabilities !== undefined) {
      const start = to.open(18);
      ActionCacheUpdateCapabilities.write(message.actionCacheUpdateCapabilities, to);
      to.close(start);
    }
    if (message.cachePriorityCapabilities !== undefined) {
      const start = to.open(26);
      PriorityCapabilities.write(message.cachePriorityCapabilities, to);
      to.close(start);
    }
    if (message.maxBatchTotalSizeBytes !== 0) {
      to.int64(32, message.maxBatchTotalSizeBytes);
    }
    if (message.symlinkAbsolutePathStrategy !== 0) {
      to.int32(40, message.symlinkAbsolutePathStrategy);
    }
    if (message.supportedCompressors.length > 0) {
      const start = to.open(50);
      for (const one of message.supportedCompressors) to.plainInt32(one);
      to.close(start);
    }
    if (message.supportedBatchUpdateCompressors.length > 0) {
      const start = to.open(58);
      for (const one of message.supportedBatchUpdateCompressors) to.plainInt32(one);
      to.close(start);
    }
    if (message.maxCasBlobSizeBytes !== 0) {
      to.int64(64, message.maxCasBlobSizeBytes);
    }
    if (message.splitBlobSupport) {
      to.bool(72, message.splitBlobSupport);
    }
    if (message.spliceBlobSupport) {
      to.bool(80, message.spliceBlobSupport);
    }
    if (message.fastCdc2020Params !== undefined) {
      const start = to.open(90);
      FastCdc2020Params.write(message.fastCdc2020Params, to);
      to.close(start);
    }
    if (message.repMaxCdcParams !== undefined) {
      const start = to.open(98);
      RepMaxCdcParams.write(message.repMaxCdcParams, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const digestFunctions: number[] = before === undefined ? [] : (before.digestFunctions as number[]);
    let actionCacheUpdateCapabilities = before?.actionCacheUpdateCapabilities;
    let cachePriorityCapabilities = before?.cachePriorityCapabilities;
    let maxBatchTotalSizeBytes = before === undefined ? 0 : before.maxBatchTotalSizeBytes;
    let symlinkAbsolutePathStrategy = before === undefined ? 0 : before.symlinkAbsolutePathStrategy;
    const supportedCompressors: number[] = before === undefined ? [] : (before.supportedCompressors as number[]);
    const supportedBatchUpdateCompressors: number[] = before === undefined ? [] : (before.supportedBatchUpdateCompressors as number[]);
    let maxCasBlobSizeBytes = before === undefined ? 0 : before.maxCasBlobSizeBytes;
    let splitBlobSupport = before === undefined ? false : before.splitBlobSupport;
    let spliceBlobSupport = before === undefined ? false : before.spliceBlobSupport;
    let fastCdc2020Params = before?.fastCdc2020Params;
    let repMaxCdcParams = before?.repMaxCdcParams;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            digestFunctions.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 8: {
          from.count();
          digestFunctions.push(from.int32());
          break;
        }
        case 18: {
          const stop = from.enter();
          actionCacheUpdateCapabilities = ActionCacheUpdateCapabilities.read(from, stop, actionCacheUpdateCapabilities);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          cachePriorityCapabilities = PriorityCapabilities.read(from, stop, cachePriorityCapabilities);
          from.leave(stop);
          break;
        }
        case 32: {
          maxBatchTotalSizeBytes = from.int64();
          break;
        }
        case 40: {
          symlinkAbsolutePathStrategy = from.int32();
          break;
        }
        case 50: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            supportedCompressors.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 48: {
          from.count();
          supportedCompressors.push(from.int32());
          break;
        }
        case 58: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            supportedBatchUpdateCompressors.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 56: {
          from.count();
          supportedBatchUpdateCompressors.push(from.int32());
          break;
        }
        case 64: {
          maxCasBlobSizeBytes = from.int64();
          break;
        }
        case 72: {
          splitBlobSupport = from.bool();
          break;
        }
        case 80: {
          spliceBlobSupport = from.bool();
          break;
        }
        case 90: {
          const stop = from.enter();
          fastCdc2020Params = FastCdc2020Params.read(from, stop, fastCdc2020Params);
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          repMaxCdcParams = RepMaxCdcParams.read(from, stop, repMaxCdcParams);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digestFunctions, actionCacheUpdateCapabilities, cachePriorityCapabilities, maxBatchTotalSizeBytes, symlinkAbsolutePathStrategy, supportedCompressors, supportedBatchUpdateCompressors, maxCasBlobSizeBytes, splitBlobSupport, spliceBlobSupport, fastCdc2020Params, repMaxCdcParams };
  },
};

/** How FastCDC 2020 cuts. */
export type FastCdc2020Params = {
  /** How long chunks are on the average; a power of two. */
  readonly avgChunkSizeBytes: number;
  /** Changes where it cuts. */
  readonly seed: number;
};

export const FastCdc2020Params: Message<FastCdc2020Params> = {
  typeName: "build.bazel.remote.execution.v2.FastCdc2020Params",
  write(message, to) {
    if (message.avgChunkSizeBytes !== 0) {
      to.uint64(8, message.avgChunkSizeBytes);
    }
    if (message.seed !== 0) {
      to.uint32(16, message.seed);
    }
  },
  read(from, end, before) {
    let avgChunkSizeBytes = before === undefined ? 0 : before.avgChunkSizeBytes;
    let seed = before === undefined ? 0 : before.seed;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          avgChunkSizeBytes = from.uint64();
          break;
        }
        case 16: {
          seed = from.uint32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { avgChunkSizeBytes, seed };
  },
};

/** How RepMaxCDC cuts. */
export type RepMaxCdcParams = {
  /** How short chunks may be. */
  readonly minChunkSizeBytes: number;
  /** How far it looks ahead. */
  readonly horizonSizeBytes: number;
};

export const RepMaxCdcParams: Message<RepMaxCdcParams> = {
  typeName: "build.bazel.remote.execution.v2.RepMaxCdcParams",
  write(message, to) {
    if (message.minChunkSizeBytes !== 0) {
      to.uint64(8, message.minChunkSizeBytes);
    }
    if (message.horizonSizeBytes !== 0) {
      to.uint64(16, message.horizonSizeBytes);
    }
  },
  read(from, end, before) {
    let minChunkSizeBytes = before === undefined ? 0 : before.minChunkSizeBytes;
    let horizonSizeBytes = before === undefined ? 0 : before.horizonSizeBytes;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          minChunkSizeBytes = from.uint64();
          break;
        }
        case 16: {
          horizonSizeBytes = from.uint64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { minChunkSizeBytes, horizonSizeBytes };
  },
};

/** What the server can do with actions. */
export type ExecutionCapabilities = {
  /** The one function that digests must be made with, as clients before 2.7 know it. */
  readonly digestFunction: number;
  /** Whether this caller may have actions run. */
  readonly execEnabled: boolean;
  /** The priorities of actions. */
  readonly executionPriorityCapabilities?: PriorityCapabilities | undefined;
  /** Which properties of inputs it can set. */
  readonly supportedNodeProperties: readonly string[];
  /** The functions that digests may be made with. */
  readonly digestFunctions: readonly number[];
};

export const ExecutionCapabilities: Message<ExecutionCapabilities> = {
  typeName: "build.bazel.remote.execution.v2.ExecutionCapabilities",
  write(message, to) {
    if (message.digestFunction !== 0) {
      to.int32(8, message.digestFunction);
    }
    if (message.execEnabled) {
      to.bool(16, message.execEnabled);
    }
    if (message.executionPriorityCapabilities !== undefined) {
      const start = to.open(26);
      PriorityCapabilities.write(message.executionPriorityCapabilities, to);
      to.close(start);
    }
    for (const one of message.supportedNodeProperties) {
      to.string(34, one);
    }
    if (message.digestFunctions.length > 0) {
      const start = to.open(42);
      for (const one of message.digestFunctions) to.plainInt32(one);
      to.close(start);
    }
  },
  read(from, end, before) {
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    let execEnabled = before === undefined ? false : before.execEnabled;
    let executionPriorityCapabilities = before?.executionPriorityCapabilities;
    const supportedNodeProperties: string[] = before === undefined ? [] : (before.supportedNodeProperties as string[]);
    const digestFunctions: number[] = before === undefined ? [] : (before.digestFunctions as number[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          digestFunction = from.int32();
          break;
        }
        case 16: {
          execEnabled = from.bool();
          break;
        }
        case 26: {
          const stop = from.enter();
          executionPriorityCapabilities = PriorityCapabilities.read(from, stop, executionPriorityCapabilities);
          from.leave(stop);
          break;
        }
        case 34: {
          from.count();
          supportedNodeProperties.push(from.string());
          break;
        }
        case 42: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            digestFunctions.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 40: {
          from.count();
          digestFunctions.push(from.int32());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { digestFunction, execEnabled, executionPriorityCapabilities, supportedNodeProperties, digestFunctions };
  },
};

/** The program that asks. */
export type ToolDetails = {
  /** Its name. */
  readonly toolName: string;
  /** Its version. */
  readonly toolVersion: string;
};

export const ToolDetails: Message<ToolDetails> = {
  typeName: "build.bazel.remote.execution.v2.ToolDetails",
  write(message, to) {
    if (message.toolName !== "") {
      to.string(10, message.toolName);
    }
    if (message.toolVersion !== "") {
      to.string(18, message.toolVersion);
    }
  },
  read(from, end, before) {
    let toolName = before === undefined ? "" : before.toolName;
    let toolVersion = before === undefined ? "" : before.toolVersion;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          toolName = from.string();
          break;
        }
        case 18: {
          toolVersion = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { toolName, toolVersion };
  },
};

/** What a call belongs to; travels in a header of it. */
export type RequestMetadata = {
  /** The program that asks. */
  readonly toolDetails?: ToolDetails | undefined;
  /** The action's name in that program. */
  readonly actionId: string;
  /** One run of that program. */
  readonly toolInvocationId: string;
  /** Runs that belong together. */
  readonly correlatedInvocationsId: string;
  /** What kind of action it is. */
  readonly actionMnemonic: string;
  /** What it is a part of making. */
  readonly targetId: string;
  /** In which configuration. */
  readonly configurationId: string;
};

export const RequestMetadata: Message<RequestMetadata> = {
  typeName: "build.bazel.remote.execution.v2.RequestMetadata",
  write(message, to) {
    if (message.toolDetails !== undefined) {
      const start = to.open(10);
      ToolDetails.write(message.toolDetails, to);
      to.close(start);
    }
    if (message.actionId !== "") {
      to.string(18, message.actionId);
    }
    if (message.toolInvocationId !== "") {
      to.string(26, message.toolInvocationId);
    }
    if (message.correlatedInvocationsId !== "") {
      to.string(34, message.correlatedInvocationsId);
    }
    if (message.actionMnemonic !== "") {
      to.string(42, message.actionMnemonic);
    }
    if (message.targetId !== "") {
      to.string(50, message.targetId);
    }
    if (message.configurationId !== "") {
      to.string(58, message.configurationId);
    }
  },
  read(from, end, before) {
    let toolDetails = before?.toolDetails;
    let actionId = before === undefined ? "" : before.actionId;
    let toolInvocationId = before === undefined ? "" : before.toolInvocationId;
    let correlatedInvocationsId = before === undefined ? "" : before.correlatedInvocationsId;
    let actionMnemonic = before === undefined ? "" : before.actionMnemonic;
    let targetId = before === undefined ? "" : before.targetId;
    let configurationId = before === undefined ? "" : before.configurationId;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          toolDetails = ToolDetails.read(from, stop, toolDetails);
          from.leave(stop);
          break;
        }
        case 18: {
          actionId = from.string();
          break;
        }
        case 26: {
          toolInvocationId = from.string();
          break;
        }
        case 34: {
          correlatedInvocationsId = from.string();
          break;
        }
        case 42: {
          actionMnemonic = from.string();
          break;
        }
        case 50: {
          targetId = from.string();
          break;
        }
        case 58: {
          configurationId = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { toolDetails, actionId, toolInvocationId, correlatedInvocationsId, actionMnemonic, targetId, configurationId };
  },
};

/** Runs actions. */
export const Execution = {
  typeName: "build.bazel.remote.execution.v2.Execution",
  methods: {
    /** Runs an action, or takes its result from the cache; tells how far it is until it is done. */
    execute: {
      name: "Execute",
      path: "/build.bazel.remote.execution.v2.Execution/Execute",
      request: ExecuteRequest,
      response: Operation,
      streams: "server",
    },
    /** Listens again to what Execute began. */
    waitExecution: {
      name: "WaitExecution",
      path: "/build.bazel.remote.execution.v2.Execution/WaitExecution",
      request: WaitExecutionRequest,
      response: Operation,
      streams: "server",
    },
  },
} as const satisfies Service;

/** What actions came to when they were run before. */
export const ActionCache = {
  typeName: "build.bazel.remote.execution.v2.ActionCache",
  methods: {
    /** The result of an action, if it is known and everything that it names is there. */
    getActionResult: {
      name: "GetActionResult",
      path: "/build.bazel.remote.execution.v2.ActionCache/GetActionResult",
      request: GetActionResultRequest,
      response: ActionResult,
      streams: "none",
    },
    /** Says what an action's result is. */
    updateActionResult: {
      name: "UpdateActionResult",
      path: "/build.bazel.remote.execution.v2.ActionCache/UpdateActionResult",
      request: UpdateActionResultRequest,
      response: ActionResult,
      streams: "none",
    },
  },
} as const satisfies Service;

/** Blobs by their digests. */
export const ContentAddressableStorage = {
  typeName: "build.bazel.remote.execution.v2.ContentAddressableStorage",
  methods: {
    /** Which of these blobs are not there. */
    findMissingBlobs: {
      name: "FindMissingBlobs",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs",
      request: FindMissingBlobsRequest,
      response: FindMissingBlobsResponse,
      streams: "none",
    },
    /** Stores many small blobs at once. */
    batchUpdateBlobs: {
      name: "BatchUpdateBlobs",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchUpdateBlobs",
      request: BatchUpdateBlobsRequest,
      response: BatchUpdateBlobsResponse,
      streams: "none",
    },
    /** Many small blobs at once. */
    batchReadBlobs: {
      name: "BatchReadBlobs",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchReadBlobs",
      request: BatchReadBlobsRequest,
      response: BatchReadBlobsResponse,
      streams: "none",
    },
    /** A directory and all those below it. */
    getTree: {
      name: "GetTree",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/GetTree",
      request: GetTreeRequest,
      response: GetTreeResponse,
      streams: "server",
    },
    /** The chunks that a blob consists of, each a blob of its own. */
    splitBlob: {
      name: "SplitBlob",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/SplitBlob",
      request: SplitBlobRequest,
      response: SplitBlobResponse,
      streams: "none",
    },
    /** Makes a blob of chunks that are there. */
    spliceBlob: {
      name: "SpliceBlob",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/SpliceBlob",
      request: SpliceBlobRequest,
      response: SpliceBlobResponse,
      streams: "none",
    },
  },
} as const satisfies Service;

/** What a server can do. */
export const Capabilities = {
  typeName: "build.bazel.remote.execution.v2.Capabilities",
  methods: {
    /** All of it, for this caller. */
    getCapabilities: {
      name: "GetCapabilities",
      path: "/build.bazel.remote.execution.v2.Capabilities/GetCapabilities",
      request: GetCapabilitiesRequest,
      response: ServerCapabilities,
      streams: "none",
    },
  },
} as const satisfies Service;
