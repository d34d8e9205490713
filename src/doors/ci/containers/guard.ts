/**
 * Removes what a job started, whatever becomes of those who started it: a shell waits for the end of a pipe that this
 * process holds open. At the end of the job, and when this process is killed, it removes all that bears the label.
 */
import { spawn } from "node:child_process";
import { Engine } from "./engine.ts";
import { type ContainerHost, type LabelledHost, nodeLabel, type NodeOfContainers } from "./host.ts";

/** Words of the engine are its arguments behind the label. */
const script = `cat >/dev/null
label=$1
shift
for n in 1 2 3; do
  ids=$("$@" ps -a -q --filter "label=$label")
  [ -z "$ids" ] || "$@" rm -f -v $ids
  nets=$("$@" network ls -q --filter "label=$label")
  [ -z "$nets" ] || "$@" network rm -f $nets || "$@" network rm $nets
  vols=$("$@" volume ls -q --filter "label=$label")
  [ -z "$vols" ] || "$@" volume rm -f $vols
  left=$("$@" ps -a -q --filter "label=$label")$("$@" network ls -q --filter "label=$label")
  [ -n "$left" ] || exit 0
  sleep 1
done
exit 1
`;

export type Guard = AsyncDisposable;

/** For what bears the first of its labels. */
export const guardContainers = (host: LabelledHost, env: Readonly<Record<string, string | undefined>>): Guard => {
  const engine = new Engine(host, env);
  return guardLabelled(host.labels[0] ?? "", engine.words(), engine.env);
};

function guardLabelled(label: string, words: readonly string[], env: Readonly<Record<string, string>>): Guard {
  const child = spawn("sh", ["-c", script, "guard", label, ...words], {
    env,
    stdio: ["pipe", "ignore", "ignore"],
    detached: true, // what stops a whole group, such as a terminal, does not stop it
  });
  child.stdin.on("error", () => {});
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("exit", () => resolve());
  });
  child.unref();
  return {
    async [Symbol.asyncDispose]() {
      child.ref();
      child.stdin.end();
      await ended;
    },
  };
}

/** What an earlier process of this name left goes, meanwhile: nothing of it runs any more. */
export function sweepContainers(host: ContainerHost, node: NodeOfContainers): void {
  void guardContainers({ ...host, labels: [nodeLabel(node)] }, process.env)[Symbol.asyncDispose]();
}
