// Generated from proto/build/bazel/remote/execution/v2/remote_execution.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { noBytes } from "#wire/reader.ts";
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
  /** To be told from the length of the hash. */
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
    /** Many small blobs at once. */
    batchReadBlobs: {
      name: "BatchReadBlobs",
      path: "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchReadBlobs",
      request: BatchReadBlobsRequest,
      response: BatchReadBlobsResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
