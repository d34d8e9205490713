// A Python that can speak gRPC, for tests of how others see us. Typical use:
//
//   const python = findPython();
//   test("…", { skip: python.skip }, () => { spawn(python.program, ["worker.py"], …) });
import { spawnSync } from "node:child_process";

export type FoundPython = {
  readonly program: string;
  /** False, or why there is none: pass it on as the `skip` of every test that needs one. */
  readonly skip: false | string;
};

/** Debian's own Python is tried besides the first on the PATH: Debian's packages are only for that one. */
const candidates = ["python3", "/usr/bin/python3"];
const packages = "python3-grpcio and python3-protobuf (Debian), or grpcio and protobuf (pip)";

export function findPython(): FoundPython {
  const problems = candidates.map((program) => {
    const probe = ["-c", "import grpc.aio, google.protobuf.descriptor_pool"];
    const { status, stderr, error } = spawnSync(program, probe, { encoding: "utf8", timeout: 60_000 });
    return status === 0 ? undefined : `${program}: ${error?.message ?? stderr.trim().split("\n").at(-1)}`;
  });
  const found = candidates.find((_, i) => problems[i] === undefined);
  if (found !== undefined) return { program: found, skip: false };
  return { program: "python3", skip: `needs python-grpc: install ${packages} (${problems.join("; ")})` };
}
