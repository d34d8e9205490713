/** `/api/cache` behind the edge: the door's answers, to whom the edge's policy lets have them. */
import { cacheAdmin, type AdminPorts } from "#doors/build/admin/admin.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import { identifyBy } from "./http-caches.ts";

export function composeCacheAdmin(ports: Omit<AdminPorts, "caller" | "trust">, admission: Admission): ServeElsewhere {
  const { identify, from } = identifyBy(admission);
  const serve = cacheAdmin({ ...ports, trust: new TrustRules(ports.index), caller: identify });
  return (request, peer) => serve(from(request, peer));
}
