import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Channel } from "./channel.ts";
import { isFault } from "./fault.ts";

/** Lets everything run that can run by itself. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
}

test("what is sent is read in order", async () => {
  const channel = new Channel<number>(10);
  for (let i = 0; i < 5; i += 1) await channel.send(i);
  channel.close();
  deepEqual(await Array.fromAsync(channel), [0, 1, 2, 3, 4]);
});

test("a full one refuses an offer, and makes a sender wait until something was read", async () => {
  const channel = new Channel<number>(2);
  equal(channel.offer(1), true);
  equal(channel.offer(2), true);
  equal(channel.offer(3), false);
  let sent = 0;
  const senders = [4, 5].map((item) => channel.send(item).then(() => (sent += 1)));
  await settle();
  equal(sent, 0);
  equal(channel.size, 2);
  const batches = channel.batches(1);
  deepEqual((await batches.next()).value, [1]);
  await settle();
  equal(sent, 1);
  equal(channel.size, 2);
  deepEqual((await batches.next()).value, [2]);
  await Promise.all(senders);
  equal(channel.size, 2);
});

test("batches are as large as what lies there, up to the most that was asked for", async () => {
  const channel = new Channel<number>(10);
  for (let i = 0; i < 5; i += 1) channel.offer(i);
  const batches = channel.batches(3);
  deepEqual((await batches.next()).value, [0, 1, 2]);
  deepEqual((await batches.next()).value, [3, 4]);
});

test("a reader that waits is woken by what comes, and by the end", async () => {
  const channel = new Channel<number>(10);
  const reading = Array.fromAsync(channel);
  await settle();
  channel.offer(1);
  await settle();
  await channel.send(2);
  await settle();
  channel.close();
  deepEqual(await reading, [1, 2]);
});

test("several readers share: each item goes to one of them, and all of them end", async () => {
  const channel = new Channel<number>(100);
  const readers = [1, 2, 3].map(async () => await Array.fromAsync(channel));
  for (let i = 0; i < 30; i += 1) {
    await channel.send(i);
    if (i % 3 === 0) await settle();
  }
  channel.close();
  const got = (await Promise.all(readers)).flat().toSorted((a, b) => a - b);
  deepEqual(
    got,
    Array.from({ length: 30 }, (_, i) => i),
  );
});

test("no sender is left waiting while there is room, however many items a batch takes", async () => {
  const channel = new Channel<number>(4);
  const senders = Array.from({ length: 40 }, (_, i) => channel.send(i));
  const got: number[] = [];
  const reading = (async () => {
    for await (const batch of channel.batches(3)) got.push(...batch);
  })();
  await Promise.all(senders);
  channel.close();
  await reading;
  deepEqual(
    got.toSorted((a, b) => a - b),
    Array.from({ length: 40 }, (_, i) => i),
  );
});

test("a closed one takes nothing more, fails those who wait to send, and still gives what it has", async () => {
  const channel = new Channel<number>(1);
  channel.offer(1);
  const waiting = channel.send(2);
  channel.close();
  await rejects(waiting, (error) => isFault(error, "unavailable"));
  await rejects(channel.send(3), (error) => isFault(error, "unavailable"));
  equal(channel.offer(4), false);
  deepEqual(await Array.fromAsync(channel), [1]);
  deepEqual(await Array.fromAsync(channel), []);
});
