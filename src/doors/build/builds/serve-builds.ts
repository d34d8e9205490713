/** The builds service on a gRPC server: what each method is answered by, and nothing else. */
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import type { Add } from "#doors/build/add.ts";
import type { BuildsService } from "./service.ts";

export function addBuilds(add: Add, builds: BuildsService): void {
  const { submitBuild, getBuild, getAction, listBuilds, watchBuild, cancelBuild } = Builds.methods;
  add(submitBuild, submitBuild, (request, call) => builds.submit(request, call));
  add(getBuild, getBuild, (request, call) => builds.get(request, call));
  add(getAction, getAction, (request, call) => builds.getAction(request, call));
  add(listBuilds, listBuilds, (request, call) => builds.list(request, call));
  add(watchBuild, watchBuild, (request, call) => builds.watch(request, call));
  add(cancelBuild, cancelBuild, (request, call) => builds.cancel(request, call));
}
