/** The cost of a sandbox alone: the namespaces and mounts that actions get, without our code around it. */
import { execFileSync, spawn } from "node:child_process";

const words = [
  "bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net",
  "--die-with-parent --uid 65534 --gid 65534 --cap-drop ALL --hostname bare --ro-bind / / --dev /dev --proc /proc",
  "--tmpfs /tmp --tmpfs /run --tmpfs /var/tmp --bind /usr /tmp/build --chdir /tmp/build --clearenv -- /bin/true",
].join(" ");

/** Starts per second, from this many shells that do nothing else; undefined if bubblewrap is not available. */
export function bareBwrap(count: number, atOnce: number): number | undefined {
  const each = Math.ceil(count / atOnce);
  const loop = `i=0; while [ $i -lt ${each} ]; do ${words} || exit 1; i=$((i+1)); done`;
  const all = `${Array.from({ length: atOnce }, () => `( ${loop} ) &`).join(" ")} wait`;
  const beganMono = performance.now();
  try {
    execFileSync("/bin/sh", ["-c", all], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  return (each * atOnce) / ((performance.now() - beganMono) / 1_000);
}

/** Starts it again and again, from this many shells, until it is disposed of. */
export function besideBwrap(shells: number): Disposable {
  const loop = `while ${words}; do :; done`;
  const options = { detached: true, stdio: "ignore" } as const;
  const children = Array.from({ length: shells }, () => spawn("/bin/sh", ["-c", loop], options));
  const end = (): void => {
    process.off("exit", end);
    for (const { pid, exitCode } of children) if (pid !== undefined && exitCode === null) process.kill(-pid, "SIGKILL");
  };
  process.once("exit", end); // however the benchmark ends
  return { [Symbol.dispose]: end };
}
