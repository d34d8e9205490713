import { equal, match, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RejectedError, rejections, sayRejection } from "./rejected.ts";

test("every kind of rejection has a text for people", () => {
  const source = readFileSync(new URL(import.meta.resolve("#kernel/model/rejection.ts")), "utf8");
  const declared = [...source.matchAll(/readonly kind: "([a-z-]+)"/g)].map(([, kind]) => String(kind));
  equal(declared.toSorted().join(" "), Object.keys(rejections).toSorted().join(" "));
  for (const [kind, { about, remedy }] of Object.entries(rejections))
    ok(about.endsWith(".") && remedy.endsWith("."), kind);
});

test("a rejection names jobs and tasks by their public ids", () => {
  equal(sayRejection(3, { kind: "job-unknown", job: 40 }), "there is no job j3-14");
  const error = new RejectedError("cancel job", 0, { kind: "job-ended", job: 1, phase: "FAILED" });
  match(error.message, /^cancel job: job-ended \(job j0-1 has already ended: FAILED\)$/);
});
