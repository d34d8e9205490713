/** Targets that go wrong, or take their time: beside the workspace that always builds. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Workspace } from "./workspace.ts";

/** Each is built by its name only. `salt` keeps them from anybody's cache. */
export function addTrials({ root, repositories }: Workspace, folder: string, salt: string): Workspace {
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (path.endsWith(".sh")) chmodSync(path, 0o755);
  };
  write(join(root, "trials/BUILD"), trialsBuild(salt));
  write(join(root, "trials/pass.sh"), '#!/bin/sh\ntest -n "$TEST_TMPDIR"\n');
  write(join(root, "trials/endless.sh"), "#!/bin/sh\necho begun\nsleep 300\n");
  // Bazel looks these up for every test, and uses them for coverage only.
  const coverage = join(folder, "repositories/remote_coverage_tools");
  write(join(coverage, "WORKSPACE"), 'workspace(name = "remote_coverage_tools")\n');
  write(join(coverage, "BUILD"), coverageBuild);
  write(join(coverage, "nothing.sh"), "#!/bin/sh\n");
  return { root, repositories: new Map([...repositories, ["remote_coverage_tools", coverage]]) };
}

const trialsBuild = (salt: string): string => `
genrule(
    name = "fails",
    outs = ["fails.txt"],
    cmd = "echo the stones are worn ${salt} >&2; exit 7",
    tags = ["manual"],
)

genrule(
    name = "slow",
    outs = ["slow.txt"],
    cmd = "sleep 10; echo ground slowly ${salt} > $@",
    tags = ["manual"],
)

sh_test(name = "pass_test", size = "small", srcs = ["pass.sh"], tags = ["manual"])

sh_test(name = "endless_test", size = "small", srcs = ["endless.sh"], tags = ["manual"])
`;

const coverageBuild = `package(default_visibility = ["//visibility:public"])

sh_binary(name = "coverage_report_generator", srcs = ["nothing.sh"])

sh_binary(name = "lcov_merger", srcs = ["nothing.sh"])

alias(name = "coverage_output_generator", actual = ":lcov_merger")
`;
