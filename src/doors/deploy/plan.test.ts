import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import type { PlanInputs } from "#kernel/read/query.ts";
import { planRelease, planReplicate, planWave, type Release } from "./plan.ts";
import { ServiceFile } from "./service/service-file.ts";

const fileOf = (wave: object) =>
  ServiceFile.safeParse({
    service: "web",
    run: { exec: ["web"] },
    targets: { regions: ["eu"] },
    waves: [{ share: "10%" }, { share: "100%", ...wave }],
  });

type Said = readonly [name: string, by: string];

function decided(wave: object, said: readonly Said[]): string {
  const service = fileOf(wave).data;
  if (!service) throw new Error("the service file is wrong");
  const release: Release = { service, sha: "4f2c91a", repository: "/r" };
  const signals = said.map(([name, payload], i) => ({ id: String(i), name, payload }));
  const payload = JSON.stringify({ manifest: "m", evidence: "e", why: "" });
  const result = { payload, digests: [] };
  const results = [{ stage: 1, key: "wave-1", generation: 1, phase: "SUCCEEDED", result }] as const;
  const rest = { generation: 1, needs: [], next: undefined };
  const inputs: PlanInputs = { spec: JSON.stringify(release), stage: "wave-2", signals, results, ...rest };
  return planWave(inputs).kind;
}

const two = { approve: 2, approvers: ["ada", "bob", "cyd"] };
const cases: readonly [string, object, readonly Said[], string][] = [
  ["without approvals it begins", {}, [], "tasks"],
  ["it waits for one", { approve: 1 }, [], "wait"],
  [
    "one person counts once",
    { approve: 2 },
    [
      ["approve", "ada"],
      ["approve", "ada"],
    ],
    "wait",
  ],
  [
    "two people are two",
    { approve: 2 },
    [
      ["approve", "ada"],
      ["approve", "eve"],
    ],
    "tasks",
  ],
  [
    "only named people count",
    two,
    [
      ["approve", "ada"],
      ["approve", "eve"],
    ],
    "wait",
  ],
  [
    "two named people are enough",
    two,
    [
      ["approve", "ada"],
      ["approve", "cyd"],
    ],
    "tasks",
  ],
  [
    "a named person's reject ends it",
    two,
    [
      ["approve", "ada"],
      ["reject", "bob"],
      ["approve", "cyd"],
    ],
    "fail",
  ],
  ["a reject of someone else does not", two, [["reject", "eve"]], "wait"],
];

describe("a wave that must be approved", () => {
  for (const [name, wave, said, kind] of cases) test(name, () => equal(decided(wave, said), kind));

  test("cannot ask for more people than it names", () => {
    equal(fileOf({ approve: 2, approvers: ["ada"] }).success, false);
    equal(fileOf(two).success, true);
  });
});

const release = (more: object): Release => {
  const parsed = ServiceFile.parse({
    service: "web",
    run: { exec: ["web"] },
    targets: { regions: ["eu", "us"] },
    ...more,
  });
  return { service: parsed, sha: "4f2c91a", repository: "/r" };
};

test("a region with nodes gets a task of its own to replicate, and the others share one", () => {
  const result = { payload: JSON.stringify({ manifest: "m", sizeBytes: 1 }), digests: [] };
  const results = [{ stage: 0, key: "seal", generation: 1, phase: "SUCCEEDED", result }] as const;
  const spec = JSON.stringify(release({ targets: { regions: ["eu", "us", "ap"] } }));
  const rest = { generation: 1, needs: [], next: undefined, signals: [] };
  const plan = planReplicate({ spec, stage: "replicate", results, ...rest }, new Set(["us"]));
  const tasks = plan.kind === "tasks" ? (plan.sets ?? []) : [];
  deepEqual(
    tasks.map((set) => [set.tasks?.map(({ key }) => key).join(), set.template.requires.at(-1)]),
    [
      ["us", "region=us"],
      ["eu,ap", "plan=deploy/2"],
    ],
  );
});

test("the first wave waits for the build and its replication, the others for the wave before", () => {
  const { stages } = planRelease(release({ waves: [{ share: "10%" }, { share: "100%" }] }), { tenant: "acme" });
  deepEqual(
    stages.map(({ name, needs }) => `${name}: ${needs.join()}`),
    ["build: ", "replicate: 0", "wave-1: 0,1", "wave-2: 2", "finish: 0,1,2,3"],
  );
});

const orders: readonly [string, object, RegExp | undefined][] = [
  [
    "a region after the other",
    {
      waves: [
        { share: "100%", regions: ["eu"] },
        { share: "100%", regions: ["us"] },
      ],
    },
    undefined,
  ],
  ["a canary region", { waves: [{ share: "10%", regions: ["eu"] }, { share: "100%" }] }, undefined],
  ["a region that never gets it whole", { waves: [{ share: "100%", regions: ["eu"] }] }, /"100%", also in us/],
  [
    "a share that does not grow",
    { waves: [{ share: "100%", regions: ["eu"] }, { share: "100%" }] },
    /larger share.*in eu/,
  ],
  ["an unknown region", { waves: [{ share: "100%", regions: ["mars"] }, { share: "100%" }] }, /names the region mars/],
  ["a service that waits for itself", { notBefore: ["web"] }, /cannot wait for itself/],
];
describe("the waves of a service file", () => {
  for (const [name, more, wrong] of orders)
    test(name, () => {
      const given = { service: "web", run: { exec: ["web"] }, targets: { regions: ["eu", "us"] }, ...more };
      const issue = ServiceFile.safeParse(given).error?.issues[0]?.message;
      if (wrong) match(issue ?? "", wrong);
      else equal(issue, undefined);
    });
});
