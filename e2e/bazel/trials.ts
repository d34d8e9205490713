/** Targets that fail, take long, or are large: beside the workspace that always builds. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Workspace } from "./workspace.ts";

export const inputsCount = 2_000;
export const largeBytes = 200_000_000;

/** Each is built by its name only. `salt` keeps them out of every cache. */
export function addTrials({ root, repositories }: Workspace, folder: string, salt: string): Workspace {
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (path.endsWith(".sh")) chmodSync(path, 0o755);
  };
  write(join(root, "trials/BUILD"), trialsBuild(salt));
  for (const [name, text] of Object.entries(tests)) write(join(root, "trials", `${name}.sh`), `#!/bin/bash\n${text}`);
  write(join(root, "links/links.bzl"), linksRules);
  write(join(root, "links/BUILD"), linksBuild);
  write(join(root, "links/grain.txt"), `grain ${salt}\n`);
  write(join(root, "large/BUILD"), largeBuild(salt));
  for (let i = 0; i < inputsCount; i += 1) write(join(root, `large/in/d${i % 20}/f${i}.txt`), `${i} ${salt}\n`);
  // Bazel looks these up for every test, although only coverage uses them.
  const coverage = join(folder, "repositories/remote_coverage_tools");
  write(join(coverage, "WORKSPACE"), 'workspace(name = "remote_coverage_tools")\n');
  write(join(coverage, "BUILD"), coverageBuild);
  write(join(coverage, "nothing.sh"), "#!/bin/sh\n");
  return { root, repositories: new Map([...repositories, ["remote_coverage_tools", coverage]]) };
}

/** The flaky one asks a server whether to fail: it cannot know how often it ran. */
const tests: Readonly<Record<string, string>> = {
  pass: 'test -n "$TEST_TMPDIR"\n',
  fail: "echo the wheel is stuck\necho and says so here >&2\nexit 3\n",
  flaky: 'exec 3<> "/dev/tcp/127.0.0.1/$FLAKY_PORT"\nread -r word <&3\necho "told to $word"\ntest "$word" = pass\n',
  endless: "echo begun\nsleep 300\n",
};

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

sh_test(name = "fail_test", size = "small", srcs = ["fail.sh"], tags = ["manual"])

sh_test(
    name = "flaky_test",
    size = "small",
    srcs = ["flaky.sh"],
    exec_properties = {"network": "on"},
    flaky = True,
    tags = ["manual"],
)

sh_test(name = "endless_test", size = "small", srcs = ["endless.sh"], tags = ["manual"])
`;

/** A link that Bazel makes itself, and a directory in which the action makes some. */
const linksRules = `def _alias(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.to)
    return [DefaultInfo(files = depset([out]))]

alias_to = rule(implementation = _alias, attrs = {"to": attr.label(allow_single_file = True)})

def _linked(ctx):
    tree = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        outputs = [tree],
        inputs = [ctx.file.src],
        command = "mkdir -p $1/deep && cp $2 $1/deep/real && ln -s deep/real $1/near && ln -s ../near $1/deep/back",
        arguments = [tree.path, ctx.file.src.path],
    )
    return [DefaultInfo(files = depset([tree]))]

linked = rule(implementation = _linked, attrs = {"src": attr.label(allow_single_file = True)})
`;

const linksBuild = `load(":links.bzl", "alias_to", "linked")

alias_to(name = "other_name", to = "grain.txt", tags = ["manual"])

linked(name = "linked", src = ":other_name", tags = ["manual"])

genrule(
    name = "through_links",
    srcs = [":linked", ":other_name"],
    outs = ["through.txt"],
    cmd = "cat $(location :other_name) $(location :linked)/near $(location :linked)/deep/back > $@",
    tags = ["manual"],
)
`;

const largeBuild = (salt: string): string => `
genrule(
    name = "of_many",
    srcs = glob(["in/**"]),
    outs = ["of_many.txt"],
    cmd = "cat $(SRCS) | sort -n > $@",
    tags = ["manual"],
)

genrule(
    name = "large",
    outs = ["large.bin"],
    cmd = "(yes '${salt}' || true) | head -c ${largeBytes} > $@",
    tags = ["manual"],
)

genrule(
    name = "large_sum",
    srcs = [":large"],
    outs = ["large.sum"],
    cmd = "sha256sum < $< | cut -c1-64 > $@",
    tags = ["manual"],
)
`;

const coverageBuild = `package(default_visibility = ["//visibility:public"])

sh_binary(name = "coverage_report_generator", srcs = ["nothing.sh"])

sh_binary(name = "lcov_merger", srcs = ["nothing.sh"])

alias(name = "coverage_output_generator", actual = ":lcov_merger")
`;
