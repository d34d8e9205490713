/** What every implementation of Streams must do, as tests: call `exerciseStreams` from its test file. */
import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault, type FaultCode } from "#base/fault.ts";
import { bytes, text } from "./exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";

export type StreamsRig = {
  readonly streams: Streams;
  /** Where the sealed streams of tenant "mill" are stored. */
  readonly blobs: BlobStore;
  /** Opens the streams again, as after a restart or on another node; left out if streams do not survive the process. */
  readonly reopened?: () => Promise<StreamsRig>;
  readonly dispose?: () => Promise<void>;
};

const key: StreamKey = { tenant: "mill", task: "t-1", token: 7, name: "stdout" };
const isCode = (code: FaultCode) => (error: unknown) => isFault(error, code);
const never = new AbortController().signal;

export function exerciseStreams(name: string, make: () => Promise<StreamsRig>): void {
  const check = (title: string, body: (streams: Streams, rig: StreamsRig) => Promise<void>): void => {
    test(title, async () => {
      const rig = await make();
      try {
        await body(rig.streams, rig);
      } finally {
        await rig.dispose?.();
      }
    });
  };

  describe(`${name} passes the suite of streams`, () => {
    check("appended bytes can be read, and become a blob when the stream is sealed", async (streams, { blobs }) => {
      equal(await streams.state(key), undefined);
      await streams.append(key, 0, bytes("grain "));
      await streams.append(key, 6, bytes("to flour"));
      deepEqual(await streams.state(key), { sizeBytes: 14 });
      const digest = await streams.seal(key);
      equal(digest, digestOf(bytes("grain to flour")));
      equal(await streams.seal(key), digest);
      deepEqual(await streams.state(key), { sizeBytes: 14, sealed: digest });
      equal(await text(blobs.read(digest)), "grain to flour");
      equal(await text(streams.read(key, 6, never)), "to flour");
      await rejects(streams.append(key, 14, bytes("more")), isCode("stale"));
    });

    check("an empty stream can be sealed", async (streams) => {
      equal(await streams.seal(key), digestOf(bytes("")));
      equal(await text(streams.read(key, 0, never)), "");
    });

    check("bytes that are already there are skipped; a gap is refused", async (streams) => {
      await streams.append(key, 0, bytes("abcdef"));
      await streams.append(key, 0, bytes("abc"));
      await streams.append(key, 4, bytes("efgh"));
      await rejects(streams.append(key, 9, bytes("x")), isCode("invalid"));
      await rejects(streams.append(key, -1, bytes("x")), isCode("invalid"));
      await streams.seal(key);
      equal(await text(streams.read(key, 0, never)), "abcdefgh");
    });

    check("a reader gets the stored bytes, then new ones, until the end", async (streams) => {
      await streams.append(key, 0, bytes("one "));
      const parts = streams.read(key, 0, never)[Symbol.asyncIterator]();
      const next = async (): Promise<string | undefined> => {
        const { value, done } = await parts.next();
        return done ? undefined : Buffer.from(value).toString("utf8");
      };
      equal(await next(), "one ");
      const coming = next();
      await streams.append(key, 4, bytes("two"));
      equal(await coming, "two");
      const end = next();
      await streams.seal(key);
      equal(await end, undefined);
    });

    check("a reader may start before the writer, and stop at any time", async (streams) => {
      const leaving = new AbortController();
      const early = text(streams.read(key, 0, leaving.signal));
      const another = text(streams.read({ ...key, name: "stderr" }, 0, leaving.signal));
      await streams.append(key, 0, bytes("late"));
      await streams.seal(key);
      equal(await early, "late");
      leaving.abort();
      equal(await another, "");
    });

    check("a reader may start while the first bytes are appended", async (streams) => {
      for (let turns = 0; turns < 30; turns += 1) {
        const one = { ...key, task: `t-${turns}` };
        const writing = streams.append(one, 0, bytes("first"));
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
        const reading = text(streams.read(one, 0, never));
        await writing;
        await streams.append(one, 5, bytes(" last"));
        await streams.seal(one);
        equal(await reading, "first last");
      }
    });

    check("B9: a writer whose token is older than one that has written is refused", async (streams) => {
      await streams.append(key, 0, bytes("old"));
      const newer = { ...key, token: 8 };
      await streams.append(newer, 0, bytes("new"));
      await rejects(streams.append(key, 3, bytes("late")), isCode("stale"));
      await rejects(streams.append({ ...key, name: "stderr" }, 0, bytes("late")), isCode("stale"));
      await rejects(streams.seal(key), isCode("stale"));
      await streams.append(newer, 3, bytes("er"));
      await streams.append({ ...key, task: "t-2", token: 1 }, 0, bytes("another task"));
      await streams.append({ ...key, tenant: "other", token: 1 }, 0, bytes("another tenant"));
      const leaving = AbortSignal.abort();
      equal(await text(streams.read(key, 0, leaving)), "old", "its bytes can still be read");
    });

    check("a removed stream is gone, and its readers end", async (streams) => {
      await streams.append(key, 0, bytes("gone"));
      const reading = text(streams.read(key, 4, never));
      await streams.remove(key);
      equal(await reading, "");
      equal(await streams.state(key), undefined);
      await streams.remove(key);
    });

    check("names and tasks may be any text", async (streams) => {
      const odd = ["../../etc", "a/b", "", "ü\0", "x".repeat(1_000)];
      for (const one of odd) await streams.append({ ...key, task: one, name: one }, 0, bytes(one.slice(0, 5)));
      for (const one of odd.filter((text) => text !== ""))
        equal((await streams.state({ ...key, task: one, name: one }))?.sizeBytes, bytes(one.slice(0, 5)).length);
    });

    check("B8, B9: acknowledged bytes and stale tokens survive the process", async (streams, { reopened }) => {
      if (!reopened) return;
      await streams.append(key, 0, bytes("kept "));
      await streams.append({ ...key, name: "sealed" }, 0, bytes("sealed"));
      const digest = await streams.seal({ ...key, name: "sealed" });
      const again = await reopened();
      try {
        deepEqual(await again.streams.state(key), { sizeBytes: 5 });
        deepEqual(await again.streams.state({ ...key, name: "sealed" }), { sizeBytes: 6, sealed: digest });
        await rejects(again.streams.append({ ...key, token: 6 }, 0, bytes("x")), isCode("stale"));
        await again.streams.append(key, 0, bytes("kept and more"));
        await again.streams.seal(key);
        equal(await text(again.streams.read(key, 0, never)), "kept and more");
      } finally {
        await again.dispose?.();
      }
    });
  });
}
