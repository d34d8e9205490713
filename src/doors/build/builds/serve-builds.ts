/** The builds service on a gRPC server: what each method is answered by, and nothing else. */
import {
  Builds,
  type CancelBuildRequest,
  type GetActionRequest,
  type GetBuildRequest,
  type ListBuildsRequest,
  type SubmitBuildRequest,
  type WatchBuildRequest,
} from "#wire/generated/millrace/build/v1/builds.ts";
import type { Message, Method } from "#wire/message.ts";
import type { BuildCall } from "#doors/build/call.ts";
import type { BuildsCall, BuildsService } from "./service.ts";

type Add = <Q, R>(
  method: Pick<Method<unknown, unknown>, "path" | "name" | "streams">,
  messages: { readonly request: Message<Q>; readonly response: Message<R> },
  handle: (request: never, call: BuildCall) => unknown,
) => void;

export function addBuilds(add: Add, builds: BuildsService): void {
  const { submitBuild, getBuild, getAction, listBuilds, watchBuild, cancelBuild } = Builds.methods;
  add(submitBuild, submitBuild, (request: SubmitBuildRequest, call: BuildsCall) => builds.submit(request, call));
  add(getBuild, getBuild, (request: GetBuildRequest, call: BuildsCall) => builds.get(request, call));
  add(getAction, getAction, (request: GetActionRequest, call: BuildsCall) => builds.getAction(request, call));
  add(listBuilds, listBuilds, (request: ListBuildsRequest, call: BuildsCall) => builds.list(request, call));
  add(watchBuild, watchBuild, (request: WatchBuildRequest, call: BuildsCall) => builds.watch(request, call));
  add(cancelBuild, cancelBuild, (request: CancelBuildRequest, call: BuildsCall) => builds.cancel(request, call));
}
