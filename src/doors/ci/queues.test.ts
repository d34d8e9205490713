import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { groupLabel, groupsIn, queueLabels } from "./queues.ts";

test("CI-72: a group of runners is a label that runners do not choose themselves", () => {
  for (const [group, label] of [
    ["gpu", "group=gpu"],
    ["GPU  Runners", "group=gpu-runners"],
    ["organization/Large", "group=large"],
    ["enterprise/a/b", "group=a/b"],
  ] as const)
    equal(groupLabel(group), label);
  deepEqual(groupsIn(["runner=x", "group=gpu", "region=eu"]), ["gpu"]);
});

test("queues send runs of a tenant or a repository to workers with certain labels", () => {
  const queues = [
    { tenant: "acme", requires: ["pool=acme"] },
    { repository: "Mill/*", requires: ["region=eu", "disk=fast"] },
    { tenant: "acme", repository: "mill/flour", requires: ["region=eu", "gpu=yes"] },
  ];
  const cases = [
    ["acme", "mill/flour", "disk=fast gpu=yes pool=acme region=eu"],
    ["acme", "baker/bread", "pool=acme"],
    ["other", "mill/flour", "disk=fast region=eu"],
    ["other", "millers/flour", ""],
  ] as const;
  for (const [tenant, repository, labels] of cases)
    equal(queueLabels(queues, { tenant, repository }).join(" "), labels, `${tenant} ${repository}`);
});
