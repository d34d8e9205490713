/**
 * Errors of the operating system as texts for people. A missing file or a full disk is not a bug of ours: the text says
 * what to try next.
 */
import { Fault, type FaultCode } from "#base/fault.ts";

export type SystemWords = {
  readonly code: FaultCode;
  readonly why: string;
  /** What to try; `path` is the file in question, if known. */
  readonly next: (path: string | undefined) => string;
};

const named = (path: string | undefined): string => path ?? "PATH";
const lookAt = (path: string | undefined): string => `look at it with: ls -ld ${named(path)}`;
const rights: SystemWords = {
  code: "unavailable",
  why: "this user may not read or write there",
  next: (path) => `run as its owner; see who that is with: ls -ld ${named(path)}`,
};
const full: SystemWords = {
  code: "exhausted",
  why: "the disk is full",
  next: (path) => `free space on it; see how full it is with: df -h ${named(path)}`,
};
const notFolder: SystemWords = {
  code: "invalid",
  why: "there is a file where a folder should be",
  next: (path) => `move that file away; ${lookAt(path)}`,
};
const filesOpen: SystemWords = {
  code: "exhausted",
  why: "too many files are open",
  next: () => "raise the limit with: ulimit -n 65536 (in a systemd unit: LimitNOFILE=65536)",
};
const unreached = (why: string): SystemWords => ({
  code: "unavailable",
  why,
  next: () => "check that it is running, and its address in the configuration",
});

export const systemWords: Readonly<Record<string, SystemWords>> = {
  EACCES: rights,
  EPERM: rights,
  EROFS: {
    code: "unavailable",
    why: "it is on a file system that can only be read",
    next: () => "mount that file system writable",
  },
  ENOSPC: full,
  EDQUOT: { ...full, why: "this user's share of the disk is used up" },
  ENOTDIR: notFolder,
  EEXIST: notFolder,
  EISDIR: {
    code: "invalid",
    why: "there is a folder where a file should be",
    next: (path) => `move that folder away; ${lookAt(path)}`,
  },
  ENOENT: {
    code: "not-found",
    why: "there is no such file or folder",
    next: (path) => `check the path, and make it if it is a folder: ${named(path)}`,
  },
  ENAMETOOLONG: { code: "invalid", why: "the path is too long", next: () => "use a shorter path" },
  ELOOP: { code: "invalid", why: "its links lead in a circle", next: lookAt },
  EMFILE: filesOpen,
  ENFILE: { ...filesOpen, why: "too many files are open on this machine" },
  ENOMEM: {
    code: "exhausted",
    why: "there is no memory left",
    next: () => "end other programs, or give this one more memory",
  },
  EIO: {
    code: "unavailable",
    why: "the disk reports an error",
    next: () => "look for what is wrong with it in: dmesg",
  },
  ENOTEMPTY: { code: "invalid", why: "the folder is not empty", next: lookAt },
  EBUSY: { code: "unavailable", why: "another program uses it", next: lookAt },
  ENOLCK: {
    code: "unavailable",
    why: "its file system has no locks",
    next: () => "use a folder on a disk of this machine, not on a network disk",
  },
  EADDRNOTAVAIL: {
    code: "invalid",
    why: "that address is not one of this machine's",
    next: () => "see its addresses with: ip address; 0.0.0.0 is all of them",
  },
  ECONNREFUSED: unreached("no program listens there"),
  ENOTFOUND: unreached("there is no host of that name"),
  ETIMEDOUT: unreached("it does not answer"),
  EHOSTUNREACH: unreached("there is no way to that host"),
};

export type SystemError = { readonly errno: string; readonly path: string | undefined };

/** The operating system's error, in this error or in a cause. */
export function systemErrorOf(error: unknown): SystemError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 10; at = at.cause, depth += 1) {
    const { code, syscall, path } = at as NodeJS.ErrnoException;
    const errno = String(code).replace(/^ERR_FS_/, "");
    if (syscall !== undefined && errno in systemWords) return { errno, path };
  }
  return undefined;
}

/** Turns an error of the operating system into a Fault; returns any other error unchanged. */
export function asSystemFault(error: unknown, doing: string): unknown {
  if (error instanceof Fault) return error;
  const found = systemErrorOf(error);
  const words = found && systemWords[found.errno];
  return words ? new Fault(words.code, doing, { ...found, why: words.why }, error) : error;
}
