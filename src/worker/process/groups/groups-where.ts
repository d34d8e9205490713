/** Where control groups are mounted, and which of them this process is in. Pure. */
import { join, relative } from "node:path";

export type Where = {
  /** /proc/self/mountinfo */
  readonly mounts: string;
  /** /proc/self/cgroup */
  readonly own: string;
};

type Mount = { readonly root: string; readonly point: string; readonly type: string; readonly options: string };

export function mountsOf(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "", point = ""] = before.split(" ");
    const [type = "", , options = ""] = after.split(" ");
    return type === "cgroup" || type === "cgroup2" ? [{ root: plain(root), point: plain(point), type, options }] : [];
  });
}

/** By controller: the folder of this process's version 1 group. */
export function ownGroupsV1({ mounts, own }: Where): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const v1 = mountsOf(mounts).filter(({ type }) => type === "cgroup");
  for (const line of own.split("\n")) {
    const [, controllers = "", ...path] = line.split(":");
    for (const controller of controllers.split(",")) {
      const mount = v1.find(({ options }) => options.split(",").includes(controller));
      if (controller !== "" && mount) found.set(controller, below(mount, path.join(":")));
    }
  }
  return found;
}

export function ownGroupV2({ mounts, own }: Where): string | undefined {
  const mount = mountsOf(mounts).find(({ type }) => type === "cgroup2");
  const path = own
    .split("\n")
    .find((line) => line.startsWith("0::"))
    ?.slice("0::".length);
  return mount && path !== undefined ? below(mount, path) : undefined;
}

/** A container sees its own group as the root of the mount. */
function below({ root, point }: Mount, path: string): string {
  const inside = relative(root, path);
  return inside.startsWith("..") ? point : join(point, inside);
}

/** Spaces and similar characters are escaped in octal there. */
const plain = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
