/**
 * How a decorator is written: what it changes, and nothing else. All other methods of the store inside stay, the
 * optional ones too. A decorator that must drop an optional method says so by setting it to undefined.
 */
import type { BlobStore, Prompt } from "./store.ts";

type Optional<T> = { [K in keyof T]: object extends Pick<T, K> ? K : never }[keyof T];
type Value<T, K extends keyof T> = T[K] | (K extends Optional<T> ? undefined : never);

/** Undefined removes a method, which only the optional ones allow. */
type Changes<T> = { readonly [K in keyof T]?: Value<T, K> };

/** Every key must be written down: a new optional method does not compile until it is forwarded. */
type Forwarded<T> = { readonly [K in keyof Required<T>]: Value<T, K> };

/** A plain object, which may be spread to add further properties. */
export function extend(inner: BlobStore, changes: Changes<BlobStore>): BlobStore {
  const forwarded: Forwarded<BlobStore> = {
    missing: (digests) => inner.missing(digests),
    read: (digest, range, form) => inner.read(digest, range, form),
    write: (digest, bytes, form) => inner.write(digest, bytes, form),
    pin: (digests, forMs) => inner.pin(digests, forMs),
    file: inner.file && (async (digest) => await inner.file?.(digest)),
    adopt: inner.adopt && (async (digest, path) => (await inner.adopt?.(digest, path)) ?? false),
    path: inner.path && (async (digest) => await inner.path?.(digest)),
    part: inner.part && (async (digest, range) => await inner.part?.(digest, range)),
    prompt: inner.prompt,
  };
  const { file, adopt, path, part, prompt, ...required } = { ...forwarded, ...changes };
  const ofMachine = { ...(file && { file }), ...(adopt && { adopt }), ...(path && { path }) };
  return { ...required, ...ofMachine, ...(part && { part }), ...(prompt && { prompt }) };
}

/** Undefined where the store inside has no `prompt`. */
export function extendPrompt(inner: Prompt | undefined, changes: Changes<Prompt>): Prompt | undefined {
  if (!inner) return undefined;
  const forwarded: Forwarded<Prompt> = {
    has: (fn, hash, at, sizeBytes) => inner.has(fn, hash, at, sizeBytes),
    bytes: (digest) => inner.bytes(digest),
    hasMany: inner.hasMany && ((fn, batch, found) => inner.hasMany?.(fn, batch, found)),
    sizeOf: inner.sizeOf && ((fn, hash) => inner.sizeOf?.(fn, hash)),
  };
  const { hasMany, sizeOf, ...required } = { ...forwarded, ...changes };
  return { ...required, ...(hasMany && { hasMany }), ...(sizeOf && { sizeOf }) };
}
