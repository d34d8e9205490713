import { spawn } from "node:child_process";

export type Guard = { serverIs(pid: number | undefined): void; dismiss(): void };

// A test process can die in any way, kill -9 included, and must not leave a server behind. So a shell waits on a pipe
// that only we hold open: when it closes, for whatever reason, the shell ends the server whose pid it was last given
// and removes the folder.
const script = `
  pid=0
  while read -r line; do pid=$line; done
  if [ "$pid" -gt 0 ]; then
    kill -QUIT "$pid" 2>/dev/null
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -KILL "$pid" 2>/dev/null
  fi
  rm -rf "$1"
`;

export function guard(folder: string): Guard {
  // detached: a Ctrl-C for the test run must not end the process that cleans up after it.
  const shell = spawn("/bin/sh", ["-c", script, "guard", folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.on("error", () => {}); // no shell (Windows): stop() still cleans up, only a crash leaves files
  shell.stdin.on("error", () => {});
  shell.unref();
  (shell.stdin as { unref?(): void }).unref?.();
  return {
    serverIs: (pid) => void shell.stdin.write(`${pid ?? 0}\n`),
    dismiss: () => void shell.stdin.end(),
  };
}
