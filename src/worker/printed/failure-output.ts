/** A failed attempt has no result, only a message: it ends with the digest of all that the attempt printed. Pure. */
import type { Digest } from "#base/digest.ts";

const shape = / \[printed (\S+)\]$/;

export const withOutput = (message: string, digest: Digest): string => `${message} [printed ${digest}]`;

/** The message for people. */
export const withoutOutput = (message: string): string => message.replace(shape, "");

export const outputIn = (message: string): Digest | undefined => shape.exec(message)?.[1];
