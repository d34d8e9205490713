// Generated from proto/millrace/build/v1/builds.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";

/** Where a build is in its life. */
export const BuildPhase = {
  /** Never sent. */
  BUILD_PHASE_UNSPECIFIED: 0,
  /** Something is still to be done. */
  BUILD_PHASE_RUNNING: 1,
  /** It is to stop, and something still runs. */
  BUILD_PHASE_CANCELLING: 2,
  /** All actions ended well, and what they made is known in the cache. */
  BUILD_PHASE_SUCCEEDED: 3,
  /** At least one action did not end well. */
  BUILD_PHASE_FAILED: 4,
  /** It was stopped. */
  BUILD_PHASE_CANCELLED: 5,
} as const;

/** Where an action is in its life. */
export const ActionState = {
  /** Never sent. */
  ACTION_STATE_UNSPECIFIED: 0,
  /** It waits for other actions. */
  ACTION_STATE_WAITING: 1,
  /** It waits for a worker. */
  ACTION_STATE_QUEUED: 2,
  /** A worker is at it. */
  ACTION_STATE_RUNNING: 3,
  /** It ended well. */
  ACTION_STATE_SUCCEEDED: 4,
  /** Its result was in the cache. */
  ACTION_STATE_CACHED: 5,
  /** It ended badly. */
  ACTION_STATE_FAILED: 6,
  /** It was not run, because one that it needs did not end well. */
  ACTION_STATE_SKIPPED: 7,
  /** It was stopped, or not begun because the build was. */
  ACTION_STATE_CANCELLED: 8,
} as const;

/** A name and what it is. */
export type Pair = {
  /** The name. */
  readonly name: string;
  /** What it is. */
  readonly value: string;
};

export const Pair: Message<Pair> = {
  typeName: "millrace.build.v1.Pair",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.value !== "") {
      to.string(18, message.value);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** Something that another action of the same build makes. */
export type OutputOf = {
  /** The key of that action. */
  readonly action: string;
  /** One of its output paths, or what is below one that is a directory. */
  readonly path: string;
};

export const OutputOf: Message<OutputOf> = {
  typeName: "millrace.build.v1.OutputOf",
  write(message, to) {
    if (message.action !== "") {
      to.string(10, message.action);
    }
    if (message.path !== "") {
      to.string(18, message.path);
    }
  },
  read(from, end, before) {
    let action = before === undefined ? "" : before.action;
    let path = before === undefined ? "" : before.path;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          action = from.string();
          break;
        }
        case 18: {
          path = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { action, path };
  },
};

/** Something that an action finds in its folder. */
export type Input = {
  /** Where it is put, relative to the folder that the action runs in. */
  readonly path: string;
  /** Whether the file can be run. What another action made is as that action left it. */
  readonly isExecutable: boolean;
  /** What it is. */
  readonly source?:
    /** A file: the blob with its bytes. */
    | { readonly kind: "blob"; readonly value: string }
    /** A folder with all that is in it: the blob is a `build.bazel.remote.execution.v2.Directory`. */
    | { readonly kind: "tree"; readonly value: string }
    /** A small file: its bytes. */
    | { readonly kind: "contents"; readonly value: Uint8Array }
    /** A symbolic link: where it leads. */
    | { readonly kind: "link"; readonly value: string }
    /** What another action made. */
    | { readonly kind: "output"; readonly value: OutputOf }
    | undefined;
};

export const Input: Message<Input> = {
  typeName: "millrace.build.v1.Input",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.isExecutable) {
      to.bool(16, message.isExecutable);
    }
    switch (message.source?.kind) {
      case "blob": {
        to.string(26, message.source.value);
        break;
      }
      case "tree": {
        to.string(34, message.source.value);
        break;
      }
      case "contents": {
        to.data(42, message.source.value);
        break;
      }
      case "link": {
        to.string(50, message.source.value);
        break;
      }
      case "output": {
        const start = to.open(58);
        OutputOf.write(message.source.value, to);
        to.close(start);
        break;
      }
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let isExecutable = before === undefined ? false : before.isExecutable;
    let source = before?.source;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 16: {
          isExecutable = from.bool();
          break;
        }
        case 26: {
          source = { kind: "blob", value: from.string() };
          break;
        }
        case 34: {
          source = { kind: "tree", value: from.string() };
          break;
        }
        case 42: {
          source = { kind: "contents", value: from.data() };
          break;
        }
        case 50: {
          source = { kind: "link", value: from.string() };
          break;
        }
        case 58: {
          const stop = from.enter();
          source = { kind: "output", value: OutputOf.read(from, stop, source?.kind === "output" ? source.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, isExecutable, source };
  },
};

/** One thing to run. */
export type BuildAction = {
  /** What it is called within the build. */
  readonly key: string;
  /** The program and its arguments. */
  readonly arguments: readonly string[];
  /** All that is in its environment. */
  readonly environment: readonly Pair[];
  /** Where it runs, relative to the folder that its inputs are in. */
  readonly workingDirectory: string;
  /** Files and folders that it makes, relative to where it runs. It has failed unless all of them are there. */
  readonly outputPaths: readonly string[];
  /** What it finds. */
  readonly inputs: readonly Input[];
  /** What the machine must be: platform properties as in the Remote Execution API. */
  readonly platform: readonly Pair[];
  /** How long it may take; 0 for what the node allows when nothing is said. */
  readonly timeoutMs: number;
  /** Its result is never taken from the cache and never put there. */
  readonly doNotCache: boolean;
  /** Its result is not taken from the cache, and replaces the one there. */
  readonly skipCacheLookup: boolean;
  /** Keys of actions that have to end well before it begins, besides those whose outputs it takes. */
  readonly after: readonly string[];
};

export const BuildAction: Message<BuildAction> = {
  typeName: "millrace.build.v1.BuildAction",
  write(message, to) {
    if (message.key !== "") {
      to.string(10, message.key);
    }
    for (const one of message.arguments) {
      to.string(18, one);
    }
    for (const one of message.environment) {
      const start = to.open(26);
      Pair.write(one, to);
      to.close(start);
    }
    if (message.workingDirectory !== "") {
      to.string(34, message.workingDirectory);
    }
    for (const one of message.outputPaths) {
      to.string(42, one);
    }
    for (const one of message.inputs) {
      const start = to.open(50);
      Input.write(one, to);
      to.close(start);
    }
    for (const one of message.platform) {
      const start = to.open(58);
      Pair.write(one, to);
      to.close(start);
    }
    if (message.timeoutMs !== 0) {
      to.int64(64, message.timeoutMs);
    }
    if (message.doNotCache) {
      to.bool(72, message.doNotCache);
    }
    if (message.skipCacheLookup) {
      to.bool(80, message.skipCacheLookup);
    }
    for (const one of message.after) {
      to.string(90, one);
    }
  },
  read(from, end, before) {
    let key = before === undefined ? "" : before.key;
    const arguments_: string[] = before === undefined ? [] : (before.arguments as string[]);
    const environment: Pair[] = before === undefined ? [] : (before.environment as Pair[]);
    let workingDirectory = before === undefined ? "" : before.workingDirectory;
    const outputPaths: string[] = before === undefined ? [] : (before.outputPaths as string[]);
    const inputs: Input[] = before === undefined ? [] : (before.inputs as Input[]);
    const platform: Pair[] = before === undefined ? [] : (before.platform as Pair[]);
    let timeoutMs = before === undefined ? 0 : before.timeoutMs;
    let doNotCache = before === undefined ? false : before.doNotCache;
    let skipCacheLookup = before === undefined ? false : before.skipCacheLookup;
    const after: string[] = before === undefined ? [] : (before.after as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          key = from.string();
          break;
        }
        case 18: {
          from.count();
          arguments_.push(from.string());
          break;
        }
        case 26: {
          const stop = from.enter();
          environment.push(Pair.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          workingDirectory = from.string();
          break;
        }
        case 42: {
          from.count();
          outputPaths.push(from.string());
          break;
        }
        case 50: {
          const stop = from.enter();
          inputs.push(Input.read(from, stop));
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          platform.push(Pair.read(from, stop));
          from.leave(stop);
          break;
        }
        case 64: {
          timeoutMs = from.int64();
          break;
        }
        case 72: {
          doNotCache = from.bool();
          break;
        }
        case 80: {
          skipCacheLookup = from.bool();
          break;
        }
        case 90: {
          from.count();
          after.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { key, arguments: arguments_, environment, workingDirectory, outputPaths, inputs, platform, timeoutMs, doNotCache, skipCacheLookup, after };
  },
};

/** What is to be done. */
export type Build = {
  /** For people. */
  readonly name: string;
  /** Whose cache is used, where a node has several. */
  readonly instanceName: string;
  /** In any order. */
  readonly actions: readonly BuildAction[];
  /** How long all of it may take; 0 for a day. */
  readonly deadlineMs: number;
};

export const Build: Message<Build> = {
  typeName: "millrace.build.v1.Build",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.instanceName !== "") {
      to.string(18, message.instanceName);
    }
    for (const one of message.actions) {
      const start = to.open(26);
      BuildAction.write(one, to);
      to.close(start);
    }
    if (message.deadlineMs !== 0) {
      to.int64(32, message.deadlineMs);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let instanceName = before === undefined ? "" : before.instanceName;
    const actions: BuildAction[] = before === undefined ? [] : (before.actions as BuildAction[]);
    let deadlineMs = before === undefined ? 0 : before.deadlineMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          instanceName = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          actions.push(BuildAction.read(from, stop));
          from.leave(stop);
          break;
        }
        case 32: {
          deadlineMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, instanceName, actions, deadlineMs };
  },
};

/** Which actions wait for the same others and are waited for by the same others: they are planned together. */
export type Group = {
  /** Their places in the list of the build's actions. */
  readonly actions: readonly number[];
  /** Labels that a worker must offer to run them. */
  readonly requires: readonly string[];
  /** The groups that have to end before, by their places. */
  readonly needs: readonly number[];
  /** The longest time that any of them may take. */
  readonly timeoutMs: number;
};

export const Group: Message<Group> = {
  typeName: "millrace.build.v1.Group",
  write(message, to) {
    if (message.actions.length > 0) {
      const start = to.open(10);
      for (const one of message.actions) to.plainInt32(one);
      to.close(start);
    }
    for (const one of message.requires) {
      to.string(18, one);
    }
    if (message.needs.length > 0) {
      const start = to.open(26);
      for (const one of message.needs) to.plainInt32(one);
      to.close(start);
    }
    if (message.timeoutMs !== 0) {
      to.int64(32, message.timeoutMs);
    }
  },
  read(from, end, before) {
    const actions: number[] = before === undefined ? [] : (before.actions as number[]);
    const requires: string[] = before === undefined ? [] : (before.requires as string[]);
    const needs: number[] = before === undefined ? [] : (before.needs as number[]);
    let timeoutMs = before === undefined ? 0 : before.timeoutMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            actions.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 8: {
          from.count();
          actions.push(from.int32());
          break;
        }
        case 18: {
          from.count();
          requires.push(from.string());
          break;
        }
        case 26: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            needs.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 24: {
          from.count();
          needs.push(from.int32());
          break;
        }
        case 32: {
          timeoutMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { actions, requires, needs, timeoutMs };
  },
};

/** A build as the node keeps it. */
export type RecordedBuild = {
  /** What was asked for. */
  readonly build?: Build | undefined;
  /** How it is done: a stage for each. */
  readonly groups: readonly Group[];
  /** The principal that submitted it. */
  readonly principal: string;
  /** Whether the submitter may take results from the cache. */
  readonly mayReadCache: boolean;
};

export const RecordedBuild: Message<RecordedBuild> = {
  typeName: "millrace.build.v1.RecordedBuild",
  write(message, to) {
    if (message.build !== undefined) {
      const start = to.open(10);
      Build.write(message.build, to);
      to.close(start);
    }
    for (const one of message.groups) {
      const start = to.open(18);
      Group.write(one, to);
      to.close(start);
    }
    if (message.principal !== "") {
      to.string(26, message.principal);
    }
    if (message.mayReadCache) {
      to.bool(32, message.mayReadCache);
    }
  },
  read(from, end, before) {
    let build = before?.build;
    const groups: Group[] = before === undefined ? [] : (before.groups as Group[]);
    let principal = before === undefined ? "" : before.principal;
    let mayReadCache = before === undefined ? false : before.mayReadCache;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          build = Build.read(from, stop, build);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          groups.push(Group.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          principal = from.string();
          break;
        }
        case 32: {
          mayReadCache = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { build, groups, principal, mayReadCache };
  },
};

/** Asks for a build. */
export type SubmitBuildRequest = {
  /** Chosen by the caller: asked again with the same one, the answer is the same build. For a day. */
  readonly requestId: string;
  /** The higher first among the caller's own, from -100 to 100. */
  readonly priority: number;
  /** The build. */
  readonly what?:
    /** Here. */
    | { readonly kind: "build"; readonly value: Build }
    /** For one that is too large for a message: the blob is a Build. */
    | { readonly kind: "buildBlob"; readonly value: string }
    | undefined;
};

export const SubmitBuildRequest: Message<SubmitBuildRequest> = {
  typeName: "millrace.build.v1.SubmitBuildRequest",
  write(message, to) {
    if (message.requestId !== "") {
      to.string(10, message.requestId);
    }
    if (message.priority !== 0) {
      to.int32(16, message.priority);
    }
    switch (message.what?.kind) {
      case "build": {
        const start = to.open(26);
        Build.write(message.what.value, to);
        to.close(start);
        break;
      }
      case "buildBlob": {
        to.string(34, message.what.value);
        break;
      }
    }
  },
  read(from, end, before) {
    let requestId = before === undefined ? "" : before.requestId;
    let priority = before === undefined ? 0 : before.priority;
    let what = before?.what;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          requestId = from.string();
          break;
        }
        case 16: {
          priority = from.int32();
          break;
        }
        case 26: {
          const stop = from.enter();
          what = { kind: "build", value: Build.read(from, stop, what?.kind === "build" ? what.value : undefined) };
          from.leave(stop);
          break;
        }
        case 34: {
          what = { kind: "buildBlob", value: from.string() };
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { requestId, priority, what };
  },
};

/** The answer to SubmitBuild. */
export type SubmitBuildResponse = {
  /** Names the build from now on. */
  readonly buildId: string;
  /** False: it had been asked for before. */
  readonly created: boolean;
};

export const SubmitBuildResponse: Message<SubmitBuildResponse> = {
  typeName: "millrace.build.v1.SubmitBuildResponse",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
    if (message.created) {
      to.bool(16, message.created);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    let created = before === undefined ? false : before.created;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        case 16: {
          created = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId, created };
  },
};

/** An action as it is now. */
export type ActionStatus = {
  /** Which one. */
  readonly key: string;
  /** Where it is. */
  readonly state: number;
  /** The digest of the action, known when all that it takes is known. */
  readonly actionDigest: string;
  /** How often it was begun. */
  readonly attempts: number;
  /** The worker, while it runs. */
  readonly worker: string;
  /** What went wrong, or what went wrong last. */
  readonly message: string;
  /** While it runs: where ByteStream.Read has what it prints, as it does for operations. */
  readonly stdoutStreamName: string;
  /** The same for what it complains about. */
  readonly stderrStreamName: string;
};

export const ActionStatus: Message<ActionStatus> = {
  typeName: "millrace.build.v1.ActionStatus",
  write(message, to) {
    if (message.key !== "") {
      to.string(10, message.key);
    }
    if (message.state !== 0) {
      to.int32(16, message.state);
    }
    if (message.actionDigest !== "") {
      to.string(26, message.actionDigest);
    }
    if (message.attempts !== 0) {
      to.int32(32, message.attempts);
    }
    if (message.worker !== "") {
      to.string(42, message.worker);
    }
    if (message.message !== "") {
      to.string(50, message.message);
    }
    if (message.stdoutStreamName !== "") {
      to.string(58, message.stdoutStreamName);
    }
    if (message.stderrStreamName !== "") {
      to.string(66, message.stderrStreamName);
    }
  },
  read(from, end, before) {
    let key = before === undefined ? "" : before.key;
    let state = before === undefined ? 0 : before.state;
    let actionDigest = before === undefined ? "" : before.actionDigest;
    let attempts = before === undefined ? 0 : before.attempts;
    let worker = before === undefined ? "" : before.worker;
    let message = before === undefined ? "" : before.message;
    let stdoutStreamName = before === undefined ? "" : before.stdoutStreamName;
    let stderrStreamName = before === undefined ? "" : before.stderrStreamName;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          key = from.string();
          break;
        }
        case 16: {
          state = from.int32();
          break;
        }
        case 26: {
          actionDigest = from.string();
          break;
        }
        case 32: {
          attempts = from.int32();
          break;
        }
        case 42: {
          worker = from.string();
          break;
        }
        case 50: {
          message = from.string();
          break;
        }
        case 58: {
          stdoutStreamName = from.string();
          break;
        }
        case 66: {
          stderrStreamName = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { key, state, actionDigest, attempts, worker, message, stdoutStreamName, stderrStreamName };
  },
};

/** How many actions are in each state. */
export type ActionCount = {
  /** The state. */
  readonly state: number;
  /** How many. */
  readonly actions: number;
};

export const ActionCount: Message<ActionCount> = {
  typeName: "millrace.build.v1.ActionCount",
  write(message, to) {
    if (message.state !== 0) {
      to.int32(8, message.state);
    }
    if (message.actions !== 0) {
      to.int32(16, message.actions);
    }
  },
  read(from, end, before) {
    let state = before === undefined ? 0 : before.state;
    let actions = before === undefined ? 0 : before.actions;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          state = from.int32();
          break;
        }
        case 16: {
          actions = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { state, actions };
  },
};

/** A build as it is now. */
export type BuildStatus = {
  /** Which one. */
  readonly buildId: string;
  /** What it is called. */
  readonly name: string;
  /** Where it is. */
  readonly phase: number;
  /** Why it did not end well. */
  readonly reason: string;
  /** When it was asked for. */
  readonly submittedAtMs: number;
  /** When it ended. */
  readonly endedAtMs?: number | undefined;
  /** States that no action is in are left out. */
  readonly counts: readonly ActionCount[];
  /** In the order of the build, where they were asked for. */
  readonly actions: readonly ActionStatus[];
};

export const BuildStatus: Message<BuildStatus> = {
  typeName: "millrace.build.v1.BuildStatus",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.phase !== 0) {
      to.int32(24, message.phase);
    }
    if (message.reason !== "") {
      to.string(34, message.reason);
    }
    if (message.submittedAtMs !== 0) {
      to.int64(40, message.submittedAtMs);
    }
    if (message.endedAtMs !== undefined) {
      to.int64(48, message.endedAtMs);
    }
    for (const one of message.counts) {
      const start = to.open(58);
      ActionCount.write(one, to);
      to.close(start);
    }
    for (const one of message.actions) {
      const start = to.open(66);
      ActionStatus.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    let name = before === undefined ? "" : before.name;
    let phase = before === undefined ? 0 : before.phase;
    let reason = before === undefined ? "" : before.reason;
    let submittedAtMs = before === undefined ? 0 : before.submittedAtMs;
    let endedAtMs = before?.endedAtMs;
    const counts: ActionCount[] = before === undefined ? [] : (before.counts as ActionCount[]);
    const actions: ActionStatus[] = before === undefined ? [] : (before.actions as ActionStatus[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 24: {
          phase = from.int32();
          break;
        }
        case 34: {
          reason = from.string();
          break;
        }
        case 40: {
          submittedAtMs = from.int64();
          break;
        }
        case 48: {
          endedAtMs = from.int64();
          break;
        }
        case 58: {
          const stop = from.enter();
          counts.push(ActionCount.read(from, stop));
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          actions.push(ActionStatus.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId, name, phase, reason, submittedAtMs, endedAtMs, counts, actions };
  },
};

/** Asks for a build as it is now. */
export type GetBuildRequest = {
  /** Which one. */
  readonly buildId: string;
  /** Whether to tell of each of its actions. */
  readonly withActions: boolean;
};

export const GetBuildRequest: Message<GetBuildRequest> = {
  typeName: "millrace.build.v1.GetBuildRequest",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
    if (message.withActions) {
      to.bool(16, message.withActions);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    let withActions = before === undefined ? false : before.withActions;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        case 16: {
          withActions = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId, withActions };
  },
};

/** Asks for what an action of a build made. */
export type GetActionRequest = {
  /** Which build. */
  readonly buildId: string;
  /** Which of its actions. */
  readonly key: string;
};

export const GetActionRequest: Message<GetActionRequest> = {
  typeName: "millrace.build.v1.GetActionRequest",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
    if (message.key !== "") {
      to.string(18, message.key);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    let key = before === undefined ? "" : before.key;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        case 18: {
          key = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId, key };
  },
};

/** What an action made at a path. */
export type OutputMade = {
  /** As the action names it. */
  readonly path: string;
  /** Whether the file can be run. */
  readonly isExecutable: boolean;
  /** What it is. */
  readonly made?:
    /** A file: the blob with its bytes. */
    | { readonly kind: "blob"; readonly value: string }
    /** A folder: the blob is a `build.bazel.remote.execution.v2.Tree`, or a Directory where there is no Tree. */
    | { readonly kind: "tree"; readonly value: string }
    /** A symbolic link: where it leads. */
    | { readonly kind: "link"; readonly value: string }
    | undefined;
};

export const OutputMade: Message<OutputMade> = {
  typeName: "millrace.build.v1.OutputMade",
  write(message, to) {
    if (message.path !== "") {
      to.string(10, message.path);
    }
    if (message.isExecutable) {
      to.bool(16, message.isExecutable);
    }
    switch (message.made?.kind) {
      case "blob": {
        to.string(26, message.made.value);
        break;
      }
      case "tree": {
        to.string(34, message.made.value);
        break;
      }
      case "link": {
        to.string(42, message.made.value);
        break;
      }
    }
  },
  read(from, end, before) {
    let path = before === undefined ? "" : before.path;
    let isExecutable = before === undefined ? false : before.isExecutable;
    let made = before?.made;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          path = from.string();
          break;
        }
        case 16: {
          isExecutable = from.bool();
          break;
        }
        case 26: {
          made = { kind: "blob", value: from.string() };
          break;
        }
        case 34: {
          made = { kind: "tree", value: from.string() };
          break;
        }
        case 42: {
          made = { kind: "link", value: from.string() };
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { path, isExecutable, made };
  },
};

/** An action of a build and what came of it. */
export type ActionReport = {
  /** As in the build's status. */
  readonly status?: ActionStatus | undefined;
  /** What its program said at its end. */
  readonly exitCode: number;
  /** What it made. */
  readonly outputs: readonly OutputMade[];
  /** The blob of what it printed; empty if that is nothing. */
  readonly stdout: string;
  /** The blob of what it complained of; empty if that is nothing. */
  readonly stderr: string;
};

export const ActionReport: Message<ActionReport> = {
  typeName: "millrace.build.v1.ActionReport",
  write(message, to) {
    if (message.status !== undefined) {
      const start = to.open(10);
      ActionStatus.write(message.status, to);
      to.close(start);
    }
    if (message.exitCode !== 0) {
      to.int32(16, message.exitCode);
    }
    for (const one of message.outputs) {
      const start = to.open(26);
      OutputMade.write(one, to);
      to.close(start);
    }
    if (message.stdout !== "") {
      to.string(34, message.stdout);
    }
    if (message.stderr !== "") {
      to.string(42, message.stderr);
    }
  },
  read(from, end, before) {
    let status = before?.status;
    let exitCode = before === undefined ? 0 : before.exitCode;
    const outputs: OutputMade[] = before === undefined ? [] : (before.outputs as OutputMade[]);
    let stdout = before === undefined ? "" : before.stdout;
    let stderr = before === undefined ? "" : before.stderr;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          status = ActionStatus.read(from, stop, status);
          from.leave(stop);
          break;
        }
        case 16: {
          exitCode = from.int32();
          break;
        }
        case 26: {
          const stop = from.enter();
          outputs.push(OutputMade.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          stdout = from.string();
          break;
        }
        case 42: {
          stderr = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { status, exitCode, outputs, stdout, stderr };
  },
};

/** Asks for the caller's builds, living ones first, then those that ended, newest first. */
export type ListBuildsRequest = {
  /** At most so many; 0 for a hundred. */
  readonly pageSize: number;
  /** Where the last answer stopped. */
  readonly pageToken: string;
};

export const ListBuildsRequest: Message<ListBuildsRequest> = {
  typeName: "millrace.build.v1.ListBuildsRequest",
  write(message, to) {
    if (message.pageSize !== 0) {
      to.int32(8, message.pageSize);
    }
    if (message.pageToken !== "") {
      to.string(18, message.pageToken);
    }
  },
  read(from, end, before) {
    let pageSize = before === undefined ? 0 : before.pageSize;
    let pageToken = before === undefined ? "" : before.pageToken;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          pageSize = from.int32();
          break;
        }
        case 18: {
          pageToken = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { pageSize, pageToken };
  },
};

/** The answer to ListBuilds. */
export type ListBuildsResponse = {
  /** Without their actions and counts. */
  readonly builds: readonly BuildStatus[];
  /** For the next page; empty when there is none. */
  readonly nextPageToken: string;
};

export const ListBuildsResponse: Message<ListBuildsResponse> = {
  typeName: "millrace.build.v1.ListBuildsResponse",
  write(message, to) {
    for (const one of message.builds) {
      const start = to.open(10);
      BuildStatus.write(one, to);
      to.close(start);
    }
    if (message.nextPageToken !== "") {
      to.string(18, message.nextPageToken);
    }
  },
  read(from, end, before) {
    const builds: BuildStatus[] = before === undefined ? [] : (before.builds as BuildStatus[]);
    let nextPageToken = before === undefined ? "" : before.nextPageToken;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          builds.push(BuildStatus.read(from, stop));
          from.leave(stop);
          break;
        }
        case 18: {
          nextPageToken = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { builds, nextPageToken };
  },
};

/** Asks for a stream of a build's changes until it has ended. */
export type WatchBuildRequest = {
  /** Which one. */
  readonly buildId: string;
};

export const WatchBuildRequest: Message<WatchBuildRequest> = {
  typeName: "millrace.build.v1.WatchBuildRequest",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId };
  },
};

/** Something that happened to a build. */
export type WatchBuildResponse = {
  /** The build as it is now, without its actions. */
  readonly build?: BuildStatus | undefined;
  /** The actions that changed since the last answer; the first answer has all of them. */
  readonly changed: readonly ActionStatus[];
};

export const WatchBuildResponse: Message<WatchBuildResponse> = {
  typeName: "millrace.build.v1.WatchBuildResponse",
  write(message, to) {
    if (message.build !== undefined) {
      const start = to.open(10);
      BuildStatus.write(message.build, to);
      to.close(start);
    }
    for (const one of message.changed) {
      const start = to.open(18);
      ActionStatus.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let build = before?.build;
    const changed: ActionStatus[] = before === undefined ? [] : (before.changed as ActionStatus[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          build = BuildStatus.read(from, stop, build);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          changed.push(ActionStatus.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { build, changed };
  },
};

/** Stops a build. */
export type CancelBuildRequest = {
  /** Which one. */
  readonly buildId: string;
  /** The reason, shown with the build. */
  readonly reason: string;
};

export const CancelBuildRequest: Message<CancelBuildRequest> = {
  typeName: "millrace.build.v1.CancelBuildRequest",
  write(message, to) {
    if (message.buildId !== "") {
      to.string(10, message.buildId);
    }
    if (message.reason !== "") {
      to.string(18, message.reason);
    }
  },
  read(from, end, before) {
    let buildId = before === undefined ? "" : before.buildId;
    let reason = before === undefined ? "" : before.reason;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          buildId = from.string();
          break;
        }
        case 18: {
          reason = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { buildId, reason };
  },
};

/** The answer to CancelBuild. */
export type CancelBuildResponse = {
  /** Where it is now. */
  readonly phase: number;
  /** False: it had ended before. */
  readonly cancelled: boolean;
};

export const CancelBuildResponse: Message<CancelBuildResponse> = {
  typeName: "millrace.build.v1.CancelBuildResponse",
  write(message, to) {
    if (message.phase !== 0) {
      to.int32(8, message.phase);
    }
    if (message.cancelled) {
      to.bool(16, message.cancelled);
    }
  },
  read(from, end, before) {
    let phase = before === undefined ? 0 : before.phase;
    let cancelled = before === undefined ? false : before.cancelled;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          phase = from.int32();
          break;
        }
        case 16: {
          cancelled = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { phase, cancelled };
  },
};

/** For tools that want something built. */
export const Builds = {
  typeName: "millrace.build.v1.Builds",
  methods: {
    /** Records a build, once. */
    submitBuild: {
      name: "SubmitBuild",
      path: "/millrace.build.v1.Builds/SubmitBuild",
      request: SubmitBuildRequest,
      response: SubmitBuildResponse,
      streams: "none",
    },
    /** Asks for a build as it is now. */
    getBuild: {
      name: "GetBuild",
      path: "/millrace.build.v1.Builds/GetBuild",
      request: GetBuildRequest,
      response: BuildStatus,
      streams: "none",
    },
    /** Asks for what an action of a build made. */
    getAction: {
      name: "GetAction",
      path: "/millrace.build.v1.Builds/GetAction",
      request: GetActionRequest,
      response: ActionReport,
      streams: "none",
    },
    /** Asks for the caller's builds. */
    listBuilds: {
      name: "ListBuilds",
      path: "/millrace.build.v1.Builds/ListBuilds",
      request: ListBuildsRequest,
      response: ListBuildsResponse,
      streams: "none",
    },
    /** Tells what happens to a build until it has ended. */
    watchBuild: {
      name: "WatchBuild",
      path: "/millrace.build.v1.Builds/WatchBuild",
      request: WatchBuildRequest,
      response: WatchBuildResponse,
      streams: "server",
    },
    /** Stops a build. */
    cancelBuild: {
      name: "CancelBuild",
      path: "/millrace.build.v1.Builds/CancelBuild",
      request: CancelBuildRequest,
      response: CancelBuildResponse,
      streams: "none",
    },
  },
} as const satisfies Service;
