import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { tellLabels, unknownAmong, unknownLabels } from "./labels.ts";

test("CI-72: labels and groups that no runner has are told, each with the nearest", () => {
  const executors = [{ offers: ["runner=ubuntu", "group=gpu"] }, { offers: ["runner=big", "region=eu"] }];
  const unknown = unknownLabels(["runner=ubunto", "runner=big", "group=gpus", "region=us"], executors);
  deepEqual(unknown, [
    { label: "ubunto", nearest: "ubuntu" },
    { label: "gpus", nearest: "gpu", isGroup: true },
  ]);
  equal(
    tellLabels(unknown),
    'no runner has the label "ubunto" (is "ubuntu" meant?); no runner is in the group "gpus" (is "gpu" meant?)',
  );
});

test("what a dispatch says at once of labels that no runner has", () => {
  const executors = [{ offers: ["door=ci", "runner=ubuntu-latest", "runner=gpu"] }];
  equal(
    unknownAmong(["gpu", "ubunut-latest"], executors),
    'no runner has the label "ubunut-latest" (is "ubuntu-latest" meant?)',
  );
  equal(unknownAmong(["gpu"], executors), "");
});
