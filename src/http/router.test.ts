import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Method } from "./endpoint.ts";
import { fillPath, parsePath } from "./path.ts";
import { Router } from "./router.ts";

const routed = (name: string) => {
  const [method = "GET", path = "/"] = name.split(" ");
  return { name, method: method as Method, pattern: parsePath(path) };
};

describe("a router", () => {
  const router = new Router(
    [
      "GET /v1/jobs",
      "POST /v1/jobs",
      "GET /v1/jobs/{job}",
      "GET /v1/jobs/latest",
      "DELETE /v1/jobs/{job}",
      "GET /v1/jobs/{job}/actions/{key+}",
      "GET /{file+}",
      "GET /",
    ].map(routed),
  );
  const cases: readonly [string, string, unknown][] = [
    ["GET", "/v1/jobs", ["GET /v1/jobs", {}]],
    ["HEAD", "/v1/jobs", ["GET /v1/jobs", {}]],
    ["GET", "/v1/jobs/j1", ["GET /v1/jobs/{job}", { job: "j1" }]],
    ["GET", "/v1/jobs/a%2Fb", ["GET /v1/jobs/{job}", { job: "a/b" }]],
    ["GET", "/v1/jobs/latest", ["GET /v1/jobs/latest", {}]],
    ["DELETE", "/v1/jobs/latest", ["DELETE /v1/jobs/{job}", { job: "latest" }]],
    ["GET", "/v1/jobs/j1/actions/a/b", ["GET /v1/jobs/{job}/actions/{key+}", { job: "j1", key: "a/b" }]],
    ["GET", "/v1/jobs/j1/actions", ["GET /{file+}", { file: "v1/jobs/j1/actions" }]],
    ["PUT", "/v1/jobs", ["GET", "POST"]],
    ["GET", "/", ["GET /", {}]],
    ["GET", "/%zz", undefined],
  ];
  for (const [method, path, expected] of cases)
    test(`${method} ${path}`, () => {
      const found = router.find(method, path);
      if (found.kind === "route") deepEqual([found.route.name, found.params], expected);
      else if (found.kind === "method") deepEqual(found.allow.slice(0, 2), expected);
      else equal(undefined, expected);
    });

  test("two routes for the same address are a mistake of the table", () => {
    throws(() => new Router(["GET /a/{x}", "GET /a/{y}"].map(routed)), /two routes serve the same address/);
  });
});

describe("a path", () => {
  test("is filled in with escapes, and never with a part that would climb", () => {
    equal(
      fillPath(parsePath("/v1/jobs/{job}/a/{key+}"), { job: "a/b c", key: "x/y z" }),
      "/v1/jobs/a%2Fb%20c/a/x/y%20z",
    );
    throws(() => fillPath(parsePath("/v1/{job}"), { job: ".." }));
    throws(() => fillPath(parsePath("/v1/{job}"), {}));
  });

  for (const wrong of ["v1", "/a/{b+}/c", "/{a}/{a}", "/a b", "/{A}"])
    test(`${wrong} is refused`, () => throws(() => parsePath(wrong)));
});
