// Generated from proto/build/bazel/remote/asset/v1/remote_asset.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";
import { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Duration } from "#wire/generated/google/protobuf/duration.ts";
import { Timestamp } from "#wire/generated/google/protobuf/timestamp.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";

/** What an address alone does not say of an asset, such as its checksum. */
export type Qualifier = {
  /** What is said. */
  readonly name: string;
  /** What it is. */
  readonly value: string;
};

export const Qualifier: Message<Qualifier> = {
  typeName: "build.bazel.remote.asset.v1.Qualifier",
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

/** Asks for a file. */
export type FetchBlobRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** How long it may take. */
  readonly timeout?: Duration | undefined;
  /** What was fetched before this has to be fetched again. */
  readonly oldestContentAccepted?: Timestamp | undefined;
  /** Addresses of the same thing: the first that works will do. */
  readonly uris: readonly string[];
  /** What else is known of it. */
  readonly qualifiers: readonly Qualifier[];
  /** The function that the answer's digest is to be made with. */
  readonly digestFunction: number;
};

export const FetchBlobRequest: Message<FetchBlobRequest> = {
  typeName: "build.bazel.remote.asset.v1.FetchBlobRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.timeout !== undefined) {
      const start = to.open(18);
      Duration.write(message.timeout, to);
      to.close(start);
    }
    if (message.oldestContentAccepted !== undefined) {
      const start = to.open(26);
      Timestamp.write(message.oldestContentAccepted, to);
      to.close(start);
    }
    for (const one of message.uris) {
      to.string(34, one);
    }
    for (const one of message.qualifiers) {
      const start = to.open(42);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let timeout = before?.timeout;
    let oldestContentAccepted = before?.oldestContentAccepted;
    const uris: string[] = before === undefined ? [] : (before.uris as string[]);
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
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
          timeout = Duration.read(from, stop, timeout);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          oldestContentAccepted = Timestamp.read(from, stop, oldestContentAccepted);
          from.leave(stop);
          break;
        }
        case 34: {
          from.count();
          uris.push(from.string());
          break;
        }
        case 42: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
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
    return { instanceName, timeout, oldestContentAccepted, uris, qualifiers, digestFunction };
  },
};

/** A file that is in the store now. */
export type FetchBlobResponse = {
  /** Why it is not, if it could not be fetched. */
  readonly status?: Status | undefined;
  /** The address that worked. */
  readonly uri: string;
  /** Those qualifiers that were looked at. */
  readonly qualifiers: readonly Qualifier[];
  /** After this it should be asked for again. */
  readonly expiresAt?: Timestamp | undefined;
  /** The file. */
  readonly blobDigest?: Digest | undefined;
  /** The function that the digest was made with. */
  readonly digestFunction: number;
};

export const FetchBlobResponse: Message<FetchBlobResponse> = {
  typeName: "build.bazel.remote.asset.v1.FetchBlobResponse",
  write(message, to) {
    if (message.status !== undefined) {
      const start = to.open(10);
      Status.write(message.status, to);
      to.close(start);
    }
    if (message.uri !== "") {
      to.string(18, message.uri);
    }
    for (const one of message.qualifiers) {
      const start = to.open(26);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.expiresAt !== undefined) {
      const start = to.open(34);
      Timestamp.write(message.expiresAt, to);
      to.close(start);
    }
    if (message.blobDigest !== undefined) {
      const start = to.open(42);
      Digest.write(message.blobDigest, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let status = before?.status;
    let uri = before === undefined ? "" : before.uri;
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
    let expiresAt = before?.expiresAt;
    let blobDigest = before?.blobDigest;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          status = Status.read(from, stop, status);
          from.leave(stop);
          break;
        }
        case 18: {
          uri = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          expiresAt = Timestamp.read(from, stop, expiresAt);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          blobDigest = Digest.read(from, stop, blobDigest);
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
    return { status, uri, qualifiers, expiresAt, blobDigest, digestFunction };
  },
};

/** Asks for a directory. */
export type FetchDirectoryRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** How long it may take. */
  readonly timeout?: Duration | undefined;
  /** What was fetched before this has to be fetched again. */
  readonly oldestContentAccepted?: Timestamp | undefined;
  /** Addresses of the same thing: the first that works will do. */
  readonly uris: readonly string[];
  /** What else is known of it. */
  readonly qualifiers: readonly Qualifier[];
  /** The function that the answer's digest is to be made with. */
  readonly digestFunction: number;
};

export const FetchDirectoryRequest: Message<FetchDirectoryRequest> = {
  typeName: "build.bazel.remote.asset.v1.FetchDirectoryRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    if (message.timeout !== undefined) {
      const start = to.open(18);
      Duration.write(message.timeout, to);
      to.close(start);
    }
    if (message.oldestContentAccepted !== undefined) {
      const start = to.open(26);
      Timestamp.write(message.oldestContentAccepted, to);
      to.close(start);
    }
    for (const one of message.uris) {
      to.string(34, one);
    }
    for (const one of message.qualifiers) {
      const start = to.open(42);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    let timeout = before?.timeout;
    let oldestContentAccepted = before?.oldestContentAccepted;
    const uris: string[] = before === undefined ? [] : (before.uris as string[]);
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
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
          timeout = Duration.read(from, stop, timeout);
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          oldestContentAccepted = Timestamp.read(from, stop, oldestContentAccepted);
          from.leave(stop);
          break;
        }
        case 34: {
          from.count();
          uris.push(from.string());
          break;
        }
        case 42: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
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
    return { instanceName, timeout, oldestContentAccepted, uris, qualifiers, digestFunction };
  },
};

/** A directory that is in the store now. */
export type FetchDirectoryResponse = {
  /** Why it is not, if it could not be fetched. */
  readonly status?: Status | undefined;
  /** The address that worked. */
  readonly uri: string;
  /** Those qualifiers that were looked at. */
  readonly qualifiers: readonly Qualifier[];
  /** After this it should be asked for again. */
  readonly expiresAt?: Timestamp | undefined;
  /** The Directory at the top. */
  readonly rootDirectoryDigest?: Digest | undefined;
  /** The function that the digest was made with. */
  readonly digestFunction: number;
};

export const FetchDirectoryResponse: Message<FetchDirectoryResponse> = {
  typeName: "build.bazel.remote.asset.v1.FetchDirectoryResponse",
  write(message, to) {
    if (message.status !== undefined) {
      const start = to.open(10);
      Status.write(message.status, to);
      to.close(start);
    }
    if (message.uri !== "") {
      to.string(18, message.uri);
    }
    for (const one of message.qualifiers) {
      const start = to.open(26);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.expiresAt !== undefined) {
      const start = to.open(34);
      Timestamp.write(message.expiresAt, to);
      to.close(start);
    }
    if (message.rootDirectoryDigest !== undefined) {
      const start = to.open(42);
      Digest.write(message.rootDirectoryDigest, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(48, message.digestFunction);
    }
  },
  read(from, end, before) {
    let status = before?.status;
    let uri = before === undefined ? "" : before.uri;
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
    let expiresAt = before?.expiresAt;
    let rootDirectoryDigest = before?.rootDirectoryDigest;
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          status = Status.read(from, stop, status);
          from.leave(stop);
          break;
        }
        case 18: {
          uri = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          expiresAt = Timestamp.read(from, stop, expiresAt);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          rootDirectoryDigest = Digest.read(from, stop, rootDirectoryDigest);
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
    return { status, uri, qualifiers, expiresAt, rootDirectoryDigest, digestFunction };
  },
};

/** Says what a file is. */
export type PushBlobRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** Addresses of the same thing. */
  readonly uris: readonly string[];
  /** What else is known of it. */
  readonly qualifiers: readonly Qualifier[];
  /** After this it is not to be believed any more. */
  readonly expireAt?: Timestamp | undefined;
  /** The file. */
  readonly blobDigest?: Digest | undefined;
  /** Blobs that are needed with it, to be kept as long. */
  readonly referencesBlobs: readonly Digest[];
  /** Directories that are needed with it, to be kept as long. */
  readonly referencesDirectories: readonly Digest[];
  /** The function that all these digests were made with. */
  readonly digestFunction: number;
};

export const PushBlobRequest: Message<PushBlobRequest> = {
  typeName: "build.bazel.remote.asset.v1.PushBlobRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    for (const one of message.uris) {
      to.string(18, one);
    }
    for (const one of message.qualifiers) {
      const start = to.open(26);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.expireAt !== undefined) {
      const start = to.open(34);
      Timestamp.write(message.expireAt, to);
      to.close(start);
    }
    if (message.blobDigest !== undefined) {
      const start = to.open(42);
      Digest.write(message.blobDigest, to);
      to.close(start);
    }
    for (const one of message.referencesBlobs) {
      const start = to.open(50);
      Digest.write(one, to);
      to.close(start);
    }
    for (const one of message.referencesDirectories) {
      const start = to.open(58);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(64, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    const uris: string[] = before === undefined ? [] : (before.uris as string[]);
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
    let expireAt = before?.expireAt;
    let blobDigest = before?.blobDigest;
    const referencesBlobs: Digest[] = before === undefined ? [] : (before.referencesBlobs as Digest[]);
    const referencesDirectories: Digest[] = before === undefined ? [] : (before.referencesDirectories as Digest[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          from.count();
          uris.push(from.string());
          break;
        }
        case 26: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          expireAt = Timestamp.read(from, stop, expireAt);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          blobDigest = Digest.read(from, stop, blobDigest);
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          referencesBlobs.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          referencesDirectories.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 64: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, uris, qualifiers, expireAt, blobDigest, referencesBlobs, referencesDirectories, digestFunction };
  },
};

/** It has been taken down. */
export type PushBlobResponse = Readonly<Record<never, never>>;

export const PushBlobResponse: Message<PushBlobResponse> = {
  typeName: "build.bazel.remote.asset.v1.PushBlobResponse",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** Says what a directory is. */
export type PushDirectoryRequest = {
  /** Tells apart stores behind one server. */
  readonly instanceName: string;
  /** Addresses of the same thing. */
  readonly uris: readonly string[];
  /** What else is known of it. */
  readonly qualifiers: readonly Qualifier[];
  /** After this it is not to be believed any more. */
  readonly expireAt?: Timestamp | undefined;
  /** The Directory at the top. */
  readonly rootDirectoryDigest?: Digest | undefined;
  /** Blobs that are needed with it, to be kept as long. */
  readonly referencesBlobs: readonly Digest[];
  /** Directories that are needed with it, to be kept as long. */
  readonly referencesDirectories: readonly Digest[];
  /** The function that all these digests were made with. */
  readonly digestFunction: number;
};

export const PushDirectoryRequest: Message<PushDirectoryRequest> = {
  typeName: "build.bazel.remote.asset.v1.PushDirectoryRequest",
  write(message, to) {
    if (message.instanceName !== "") {
      to.string(10, message.instanceName);
    }
    for (const one of message.uris) {
      to.string(18, one);
    }
    for (const one of message.qualifiers) {
      const start = to.open(26);
      Qualifier.write(one, to);
      to.close(start);
    }
    if (message.expireAt !== undefined) {
      const start = to.open(34);
      Timestamp.write(message.expireAt, to);
      to.close(start);
    }
    if (message.rootDirectoryDigest !== undefined) {
      const start = to.open(42);
      Digest.write(message.rootDirectoryDigest, to);
      to.close(start);
    }
    for (const one of message.referencesBlobs) {
      const start = to.open(50);
      Digest.write(one, to);
      to.close(start);
    }
    for (const one of message.referencesDirectories) {
      const start = to.open(58);
      Digest.write(one, to);
      to.close(start);
    }
    if (message.digestFunction !== 0) {
      to.int32(64, message.digestFunction);
    }
  },
  read(from, end, before) {
    let instanceName = before === undefined ? "" : before.instanceName;
    const uris: string[] = before === undefined ? [] : (before.uris as string[]);
    const qualifiers: Qualifier[] = before === undefined ? [] : (before.qualifiers as Qualifier[]);
    let expireAt = before?.expireAt;
    let rootDirectoryDigest = before?.rootDirectoryDigest;
    const referencesBlobs: Digest[] = before === undefined ? [] : (before.referencesBlobs as Digest[]);
    const referencesDirectories: Digest[] = before === undefined ? [] : (before.referencesDirectories as Digest[]);
    let digestFunction = before === undefined ? 0 : before.digestFunction;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          instanceName = from.string();
          break;
        }
        case 18: {
          from.count();
          uris.push(from.string());
          break;
        }
        case 26: {
          const stop = from.enter();
          qualifiers.push(Qualifier.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          expireAt = Timestamp.read(from, stop, expireAt);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          rootDirectoryDigest = Digest.read(from, stop, rootDirectoryDigest);
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          referencesBlobs.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          referencesDirectories.push(Digest.read(from, stop));
          from.leave(stop);
          break;
        }
        case 64: {
          digestFunction = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { instanceName, uris, qualifiers, expireAt, rootDirectoryDigest, referencesBlobs, referencesDirectories, digestFunction };
  },
};

/** It has been taken down. */
export type PushDirectoryResponse = Readonly<Record<never, never>>;

export const PushDirectoryResponse: Message<PushDirectoryResponse> = {
  typeName: "build.bazel.remote.asset.v1.PushDirectoryResponse",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** Brings assets into the store. */
export const Fetch = {
  typeName: "build.bazel.remote.asset.v1.Fetch",
  methods: {
    /** One file. */
    fetchBlob: {
      name: "FetchBlob",
      path: "/build.bazel.remote.asset.v1.Fetch/FetchBlob",
      request: FetchBlobRequest,
      response: FetchBlobResponse,
      streams: "none",
    },
    /** A directory with everything below it. */
    fetchDirectory: {
      name: "FetchDirectory",
      path: "/build.bazel.remote.asset.v1.Fetch/FetchDirectory",
      request: FetchDirectoryRequest,
      response: FetchDirectoryResponse,
      streams: "none",
    },
  },
} as const satisfies Service;

/** Says what assets are, so that others need not fetch them. */
export const Push = {
  typeName: "build.bazel.remote.asset.v1.Push",
  methods: {
    /** One file. */
    pushBlob: {
      name: "PushBlob",
      path: "/build.bazel.remote.asset.v1.Push/PushBlob",
      request: PushBlobRequest,
      response: PushBlobResponse,
      streams: "none",
    },
    /** A directory with everything below it. */
    pushDirectory: {
      name: "PushDirectory",
      path: "/build.bazel.remote.asset.v1.Push/PushDirectory",
      request: PushDirectoryRequest,
      response: PushDirectoryResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
