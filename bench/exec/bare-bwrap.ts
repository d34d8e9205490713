/** What a sandbox costs by itself: the namespaces and mounts that actions get, and nothing of ours around it. */
import { execFileSync, spawn } from "node:child_process";

const words = [
  "bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net",
  "--die-with-parent --uid 65534 --gid 65534 --cap-drop ALL --hostname bare --ro-bind / / --dev /dev --proc /proc",
  "--tmpfs /tmp --tmpfs /run --tmpfs /var/tmp --bind /usr /tmp/build --chdir /tmp/build --clearenv -- /bin/true",
].join(" ");

/** Starts a second, from so many shells that do nothing else; undefined where it cannot be had. */
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

/** Starts it again and again, from so many shells, until that is over. */
export function besideBwrap(shells: number): Disposable {
  const loop = `while ${words}; do :; done`;
  const options = { detached: true, stdio: "ignore" } as const;
  const children = Array.from({ length: shells }, () => spawn("/bin/sh", ["-c", loop], options));
  const end = (): void => {
    process.off("exit", end);
    for (const { pid, exitCode } of children) if (pid !== undefined && exitCode === null) process.kill(-pid, "SIGKILL");
  };
  process.once("exit", end); // whatever ends the benchmark
  return { [Symbol.dispose]: end };
}
