/** What a build must result in, on one node and on several. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import type { Site } from "./site.ts";
import { Teller } from "./teller.ts";
import { inputsCount, largeBytes } from "./trials.ts";

export const links = ["//links:through_links", "//links:linked"];
export const ofMany = "//large:of_many";
export const large = ["//large:large", "//large:large_sum"];

/** C++ libraries, a binary, its output, and a tree that it fills. */
export function wheelsTurned(site: Site): void {
  match(site.made("flour/said.txt"), new RegExp(`^0 ${site.salt}\n1 ${site.salt}\n`));
  deepEqual(readdirSync(site.at("flour/sacks")).toSorted(), ["deep", "empty", "grind"]);
  ok((statSync(site.at("flour/sacks/grind")).mode & 0o100) !== 0);
  match(readFileSync(site.at("flour/sacks/deep/er/flour"), "utf8"), new RegExp(site.salt));
}

export function linksLead(site: Site): void {
  equal(site.made("links/through.txt"), `grain ${site.salt}\n`.repeat(3));
  const targets = ["near", "deep/back"].map((path) => readlinkSync(site.at(`links/linked/${path}`)));
  deepEqual(targets, ["deep/real", "../near"]);
}

export function manyWereRead(site: Site): void {
  const lines = site.made("large/of_many.txt").trimEnd().split("\n");
  deepEqual([lines.length, lines.at(-1)], [inputsCount, `${inputsCount - 1} ${site.salt}`]);
}

/** Unchanged: an action with it as input has hashed it. */
export async function largeIsWhole(site: Site): Promise<void> {
  const file = site.at("large/large.bin");
  equal(statSync(file).size, largeBytes);
  const hash = createHash("sha256");
  for await (const part of createReadStream(file)) hash.update(part as Buffer);
  equal(hash.digest("hex"), site.made("large/large.sum").trim());
}

/** Each test ends in its own way, and its output is shown. A flaky one does not fail the build. */
export async function testsEndEachItsWay(site: Site): Promise<void> {
  await using teller = await Teller.open(["fail", "pass"]);
  const told = `--test_env=FLAKY_PORT=${teller.port}`;
  const { output } = await site.test(["//trials:pass_test", "//trials:flaky_test"], told, "--test_output=all");
  match(output, /^\/\/trials:pass_test +PASSED/m);
  match(output, /^\/\/trials:flaky_test +FLAKY/m);
  match(output, /told to fail[^]*told to pass/);
  equal(teller.told, 2);
  const wrong = site.test(["//trials:fail_test", "//trials:endless_test"], "--keep_going", "--test_timeout=3");
  await rejects(wrong, (error) => {
    match(String(error), /^\/\/trials:fail_test +FAILED/m);
    match(String(error), /^\/\/trials:endless_test +TIMEOUT/m);
    match(String(error), /the wheel is stuck\nand says so here/);
    return true;
  });
}
