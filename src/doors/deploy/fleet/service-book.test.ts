import { deepEqual, rejects } from "node:assert/strict";
import { test } from "node:test";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { ServiceFile } from "#doors/deploy/service/service-file.ts";
import { ServiceBook } from "./service-book.ts";

const release = (service: string, ...notBefore: readonly string[]) => ({
  service: ServiceFile.parse({ service, run: { exec: ["x"] }, targets: { regions: ["eu"] }, notBefore }),
  sha: "4f2c91a",
  repository: "/r",
});

test("SB1: services that wait for each other are refused, however long the circle is", async () => {
  const clock = { monotonicMs: () => 0, wallMs: () => 0, after: () => () => undefined };
  const book = new ServiceBook(
    watchedRecords(
      memoryRecords(() => 0),
      clock,
    ),
    clock,
  );
  await book.enter("acme", release("db"));
  await book.enter("acme", release("api", "db"));
  await book.enter("acme", release("web", "api", "db"));
  await rejects(book.enter("acme", release("db", "web")), /wait for each other: db before .*db/);
  await book.enter("acme", release("web", "api"));
  await book.enter("acme", release("api"));
  await book.enter("acme", release("db", "web"));
  deepEqual((await book.list("acme")).map(({ service }) => service).toSorted(), ["api", "db", "web"]);
  deepEqual(await book.list("other"), []);
});
