/** A workspace of many small actions in layers: each reads outputs of two actions of the layer before. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeWorkspace, type Workspace } from "#e2e/bazel/workspace.ts";

export type Sacks = {
  readonly layers: number;
  readonly width: number;
  /** How long each action takes, at least. */
  readonly seconds: number;
};

export const sacksTarget = "//sacks:all_of_them";

/** `salt` makes the results of each workspace different. */
export function makeSacks(folder: string, salt: string, sacks: Sacks): Workspace {
  const workspace = makeWorkspace(folder, salt);
  mkdirSync(join(workspace.root, "sacks"), { recursive: true });
  writeFileSync(join(workspace.root, "sacks/BUILD"), buildFile(salt, sacks));
  return workspace;
}

/** The size of the final output: every action adds one line to its inputs. */
export const actionsIn = ({ layers, width }: Sacks): number => layers * width + 1;

function buildFile(salt: string, { layers, width, seconds }: Sacks): string {
  const name = (layer: number, i: number): string => `sack_${layer}_${i % width}`;
  const rules: string[] = [];
  for (let layer = 0; layer < layers; layer += 1)
    for (let i = 0; i < width; i += 1) {
      const given = layer === 0 ? [] : [`:${name(layer - 1, i)}`, `:${name(layer - 1, i + 1)}`];
      rules.push(
        genrule(name(layer, i), given, `sleep ${seconds}; (echo ${salt} ${layer} ${i}; cat /dev/null $(SRCS))`),
      );
    }
  const last = Array.from({ length: width }, (_, i) => `:${name(layers - 1, i)}`);
  rules.push(genrule("all_of_them", last, "cat $(SRCS) | sort -u"));
  return rules.join("\n");
}

const genrule = (name: string, srcs: readonly string[], command: string): string =>
  `genrule(
    name = "${name}",
    srcs = ${JSON.stringify(srcs)},
    outs = ["${name}.txt"],
    cmd = "${command} > $@",
)
`;
