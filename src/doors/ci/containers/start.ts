/** Before the first step: services, then the container in which the steps run. */
import { type JobContainers, noContainers, type Tell } from "#doors/ci/run/containers.ts";
import type { JobState } from "#doors/ci/run/job-state.ts";
import { containerWanted, servicesWanted } from "./wanted.ts";

export async function startContainers(state: JobState, tell: Tell, signal: AbortSignal): Promise<void> {
  const { spec, machine, root } = state;
  if (!spec.container && !spec.services) return;
  const scope = state.scope(root, state.env);
  const services = spec.services && servicesWanted(spec.services, scope);
  const wanted = spec.container && containerWanted(spec.container, scope);
  if (!wanted && (services?.size ?? 0) === 0) return;
  const containers: JobContainers | undefined = machine.containers;
  if (!containers) throw noContainers(wanted ? "this job's container" : "this job's services");
  for (const one of [wanted, ...(services?.values() ?? [])])
    if (one?.credentials) state.masks.add(one.credentials.password);
  if (services && services.size > 0) state.services = await containers.services(services, tell, signal);
  if (!wanted) return;
  const { inside, ...started } = await containers.job(wanted, tell, signal);
  state.inside = inside;
  state.container = started;
}
