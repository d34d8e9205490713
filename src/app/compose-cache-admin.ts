/** `/api/cache` behind the edge: the door's answers, to whom the edge's policy lets have them. */
import { cacheAdmin, type AdminPorts } from "#doors/build/admin/admin.ts";
import { TrustRules } from "#doors/build/trust-rules.ts";
import type { Admission } from "#edge/admission.ts";
import type { ServeElsewhere } from "#edge/routes.ts";
import { identifyBy } from "./compose-http-caches.ts";

export function composeCacheAdmin(ports: Omit<AdminPorts, "caller" | "trust">, admission: Admission): ServeElsewhere {
  const { identify, from } = identifyBy(admission);
  const serve = cacheAdmin({ ...ports, trust: new TrustRules(ports.index), caller: identify });
  return (request, peer) => serve(from(request, peer));
}
