/**
 * What keeps an installed agent running, and what decides whether a new version of it stays: a small shell script, so
 * that it costs no memory and never has to be updated itself.
 *
 * SU1 A new version of the agent has its trial: unless it says within its time that it answers to a node, or if it ends
 *     before, the one before it is started again.
 * SU2 An agent that was good and then ends five times in a row within ten seconds makes room for the one before it.
 *
 * In its folder: `current` (link to the script that starts a version), `previous` (name of the one before), `trial`
 * (manifest, seconds; while it stands the current version is not confirmed), `failed` (manifest of what did not stay).
 */
export const supervisorScript = `#!/bin/sh
# Runs the agent, and goes back to the version before when a new one does not stay. Kept by Millrace.
cd "$(dirname "$0")" || exit 1
child=
trap 'test -n "$child" && kill -TERM "$child"; wait "$child" 2>/dev/null; exit 0' TERM INT
back() {
  test -s previous || return 1
  ln -s "$(cat previous)" current.back && mv -T current.back current
  test -f trial && cut -d" " -f1 trial > failed
  rm -f trial begun
  sync .
}
fast=0
while :; do
  test -f trial || rm -f begun
  if test -f begun; then back; fi
  tried=
  if test -f trial; then : > begun; tried=$(cat trial); fi
  started=$(date +%s)
  sh ./current &
  child=$!
  if test -n "$tried"; then
    running=$child
    ( sleep "\${tried#* }"; test "$(cat trial 2>/dev/null)" = "$tried" && kill -KILL "$running" ) &
  fi
  wait "$child"
  child=
  if test $(($(date +%s) - started)) -lt 10; then fast=$((fast + 1)); else fast=0; fi
  if test $fast -ge 5 && test -z "$tried"; then back && rm -f previous; fast=0; fi
  test $fast -gt 1 && { sleep 1 & child=$!; wait $child; child=; }
done
`;

/** For machines with systemd. Services outlive the agent, so only the agent itself is stopped. */
export const systemdUnit = (folder: string): string => `[Unit]
Description=Millrace agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=/bin/sh ${folder}/supervise.sh
Restart=always
RestartSec=2
KillMode=process

[Install]
WantedBy=multi-user.target
`;

/** A version's start script: one file, so that changing to it is one rename. */
export const startScript = ({ folder, command, root, manifest }: Start): string =>
  [
    "#!/bin/sh",
    `cd ${quoted(folder)} || exit 1`,
    // What a release of the agent may run on.
    `export MILLRACE_NODE=${quoted(process.execPath)}`,
    ...(manifest === undefined ? [] : [`export MILLRACE_MANIFEST=${quoted(manifest)}`]),
    `exec ${command.map(quoted).join(" ")} ${quoted(root)}`,
    "",
  ].join("\n");

export type Start = {
  /** Where the version lies. */
  readonly folder: string;
  readonly command: readonly string[];
  /** The agent's folder. */
  readonly root: string;
  readonly manifest: string | undefined;
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
