/** For tests: podman with storage of its own, and an image that is made from this machine's busybox: no registry. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const image = "localhost/millrace-test:1";

const find = (...paths: readonly string[]): string | undefined => paths.find((path) => existsSync(path));
const busybox = find("/bin/busybox", "/usr/bin/busybox");
const runc = find("/usr/sbin/runc", "/usr/bin/runc");

/**
 * crun refuses machines with both versions of cgroups, and containers may not raise limits where root has not all
 * capabilities: so runc, and limits that are said.
 */
const configuration = (): string => `[engine]
runtime="runc"
helper_binaries_dir=["/usr/lib/podman", "/usr/libexec/podman"]
[engine.runtimes]
runc=["${runc ?? "runc"}"]
[containers]
default_ulimits=["nofile=1024:1024", "nproc=4096:4096"]
[network]
network_backend="netavark"
`;

export class TestPodman implements Disposable {
  readonly folder: string;
  readonly command: readonly string[];

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "millrace-podman-"));
    const file = join(this.folder, "containers.conf");
    writeFileSync(file, configuration());
    const storage = ["--root", join(this.folder, "storage"), "--runroot", join(this.folder, "run")];
    this.command = ["env", `CONTAINERS_CONF=${file}`, "podman", ...storage];
    this.#import();
  }

  run(...args: readonly string[]): string {
    const [program = "", ...rest] = this.command;
    return execFileSync(program, [...rest, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
  }

  /** Containers and volumes that there are; networks, which all storages share, only with the label. */
  left(label: string): readonly string[] {
    const lines = (text: string): readonly string[] =>
      text.split("\n").filter((line) => line !== "" && line !== "podman");
    return [
      ...lines(this.run("ps", "-a", "--format", "{{.Names}}")),
      ...lines(this.run("network", "ls", "--filter", `label=${label}`, "--format", "{{.Name}}")),
      ...lines(this.run("volume", "ls", "--format", "{{.Name}}")),
    ];
  }

  #import(): void {
    if (!busybox) throw new Error("there is no busybox");
    const root = join(this.folder, "root");
    for (const name of ["bin", "tmp", "etc", "root", "proc", "dev", "sys"])
      mkdirSync(join(root, name), { recursive: true });
    copyFileSync(busybox, join(root, "bin/busybox"));
    chmodSync(join(root, "bin/busybox"), 0o755);
    const names = execFileSync(busybox, ["--list"], { encoding: "utf8" }).split("\n");
    for (const name of names) if (name !== "" && name !== "busybox") symlinkSync("busybox", join(root, "bin", name));
    writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\nminer:x:1000:1000::/tmp:/bin/sh\n");
    const tar = join(this.folder, "root.tar");
    execFileSync("tar", ["-C", root, "-cf", tar, "."]);
    this.run("import", "-q", tar, image);
    rmSync(tar);
    rmSync(root, { recursive: true });
  }

  [Symbol.dispose](): void {
    try {
      this.run("rm", "-f", "-a");
      this.run("rmi", "-f", "-a");
    } catch {
      // what is left is below the folder
    }
    try {
      execFileSync("sh", [
        "-c",
        `for m in $(grep -o '${this.folder}/[^ ]*' /proc/mounts | sort -r); do umount -l "$m"; done`,
      ]);
    } catch {
      // nothing was mounted
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Why containers cannot be run here, as a reason to skip; false if they can. */
export function podmanMissing(): string | false {
  if (process.platform !== "linux") return "needs podman: it needs linux";
  if (process.getuid?.() !== 0) return "needs podman: its tests run it as root";
  if (!busybox) return "needs podman: there is no busybox to make an image of (Debian: busybox-static)";
  try {
    execFileSync("podman", ["--version"], { stdio: "pipe" });
    using podman = new TestPodman();
    podman.run("run", "--rm", "--network=none", image, "true");
    return false;
  } catch (error) {
    const said = (error as { readonly stderr?: Buffer }).stderr;
    return `needs podman: ${String(said ?? error)
      .trim()
      .split("\n")
      .at(-1)}`;
  }
}
