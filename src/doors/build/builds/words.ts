/** Builds in JSON: states and phases by name, times and digests as they are. Pure. */
import {
  ActionState,
  BuildPhase,
  type ActionReport,
  type ActionStatus,
  type BuildStatus,
  type WatchBuildResponse,
} from "#wire/generated/millrace/build/v1/builds.ts";

const namesOf = (values: Readonly<Record<string, number>>, prefix: string): ReadonlyMap<number, string> =>
  new Map(Object.entries(values).map(([name, number]) => [number, name.slice(prefix.length).toLowerCase()]));

const phases = namesOf(BuildPhase, "BUILD_PHASE_");
const states = namesOf(ActionState, "ACTION_STATE_");

export const phaseName = (phase: number): string => phases.get(phase) ?? "unknown";

export const actionWords = ({ key, state, actionDigest, attempts, worker, message, ...streams }: ActionStatus) => ({
  key,
  state: states.get(state) ?? "unknown",
  ...(actionDigest !== "" && { action: actionDigest }),
  attempts,
  ...(worker !== "" && { worker }),
  ...(message !== "" && { message }),
  ...(streams.stdoutStreamName !== "" && { stdoutStream: streams.stdoutStreamName }),
  ...(streams.stderrStreamName !== "" && { stderrStream: streams.stderrStreamName }),
});

export const buildWords = ({
  buildId,
  name,
  phase,
  reason,
  submittedAtMs,
  endedAtMs,
  counts,
  actions,
}: BuildStatus) => ({
  build: buildId,
  name,
  phase: phaseName(phase),
  ...(reason !== "" && { reason }),
  submittedAtMs,
  ...(endedAtMs !== undefined && { endedAtMs }),
  ...(counts.length > 0 && {
    counts: Object.fromEntries(counts.map((count) => [states.get(count.state) ?? "unknown", count.actions])),
  }),
  ...(actions.length > 0 && { actions: actions.map(actionWords) }),
});

export const reportWords = ({ status, exitCode, outputs, stdout, stderr }: ActionReport) => ({
  ...(status && actionWords(status)),
  exitCode,
  outputs: outputs.map(({ path, isExecutable, made }) => ({
    path,
    ...(made && { [made.kind]: made.value }),
    ...(isExecutable && { executable: true }),
  })),
  ...(stdout !== "" && { stdout }),
  ...(stderr !== "" && { stderr }),
});

export const newsWords = ({ build, changed }: WatchBuildResponse) => ({
  ...(build && buildWords(build)),
  changed: changed.map(actionWords),
});
