/** A small C++ workspace, created for every run so that no cache has seen it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export type Workspace = { readonly root: string; readonly repositories: ReadonlyMap<string, string> };

/** `salt` is compiled in everywhere. */
export function makeWorkspace(folder: string, salt: string): Workspace {
  const root = join(folder, "workspace");
  const write = (at: string, files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(at, path)), { recursive: true });
      writeFileSync(join(at, path), text);
    }
  };
  write(root, {
    WORKSPACE: 'workspace(name = "mill")\n',
    "wheels/salt.h": `#pragma once\n#define SALT "${salt}"\n`,
    ...wheels,
    "wheels/main.cc": mainSource,
    "wheels/BUILD": wheelsBuild,
    "flour/sacks.bzl": sacksRule,
    "flour/BUILD": flourBuild,
  });
  const repositories = new Map<string, string>();
  for (const [name, files] of Object.entries(standIns)) {
    const at = join(folder, "repositories", name);
    write(at, { WORKSPACE: `workspace(name = "${name}")\n`, BUILD: "", ...files });
    repositories.set(name, at);
  }
  return { root, repositories };
}

const count = 4;
const numbers = Array.from({ length: count }, (_, i) => i);

/** Each wheel turns the one before it. */
const wheels = Object.fromEntries(
  numbers.flatMap((i) => [
    [`wheels/wheel${i}.h`, `#pragma once\n#include <string>\nstd::string wheel${i}();\n`],
    [
      `wheels/wheel${i}.cc`,
      [
        `#include "wheels/wheel${i}.h"`,
        '#include "wheels/salt.h"',
        ...(i > 0 ? [`#include "wheels/wheel${i - 1}.h"`] : []),
        `std::string wheel${i}() { return ${i > 0 ? `wheel${i - 1}() + ` : ""}"${i} " SALT "\\n"; }`,
        "",
      ].join("\n"),
    ],
  ]),
);

const mainSource = `#include <iostream>
#include "wheels/wheel${count - 1}.h"
int main() { std::cout << wheel${count - 1}(); }
`;

const wheelsBuild = `${numbers
  .map(
    (i) => `cc_library(
    name = "wheel${i}",
    srcs = ["wheel${i}.cc", "salt.h"],
    hdrs = ["wheel${i}.h"],
    deps = [${i > 0 ? `":wheel${i - 1}"` : ""}],
)
`,
  )
  .join("\n")}
cc_binary(
    name = "mill",
    srcs = ["main.cc"],
    deps = [":wheel${count - 1}"],
    visibility = ["//visibility:public"],
)
`;

/** A directory with an executable, an empty file and a folder in a folder: a tree in the result. */
const sacksRule = `def _sacks(ctx):
    tree = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        outputs = [tree],
        tools = [ctx.executable.mill],
        command = "mkdir -p $1/deep/er && $2 > $1/deep/er/flour && touch $1/empty && " +
                  "printf '#!/bin/sh\\\\necho ground\\\\n' > $1/grind && chmod +x $1/grind",
        arguments = [tree.path, ctx.executable.mill.path],
    )
    return [DefaultInfo(files = depset([tree]))]

sacks = rule(
    implementation = _sacks,
    attrs = {"mill": attr.label(executable = True, cfg = "target")},
)
`;

const flourBuild = `load(":sacks.bzl", "sacks")

sacks(
    name = "sacks",
    mill = "//wheels:mill",
)

genrule(
    name = "said",
    outs = ["said.txt"],
    cmd = "$(location //wheels:mill) | tee $@",
    tools = ["//wheels:mill"],
)
`;

/** Bazel would download these although its C++ rules are built in: each stub says so. */
const own = (names: readonly string[]): string => names.map((name) => `${name} = native.${name}\n`).join("");

const standIns: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  rules_cc: {
    "cc/BUILD":
      'alias(name = "toolchain_type", actual = "@bazel_tools//tools/cpp:toolchain_type", ' +
      'visibility = ["//visibility:public"])\n',
    "cc/defs.bzl": own([
      "cc_library",
      "cc_binary",
      "cc_test",
      "cc_import",
      "cc_toolchain",
      "cc_toolchain_suite",
      "cc_toolchain_alias",
      "cc_libc_top_alias",
      "objc_library",
    ]),
  },
  rules_java: {
    "java/BUILD": "",
    "java/defs.bzl": own([
      "java_binary",
      "java_import",
      "java_library",
      "java_test",
      "java_plugin",
      "java_runtime",
      "java_toolchain",
      "java_package_configuration",
    ]),
  },
  rules_proto: { "proto/BUILD": "", "proto/defs.bzl": own(["proto_library", "proto_lang_toolchain"]) },
};
