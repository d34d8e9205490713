/** `GET /api/why?of=...`: an operation, a build (with `key`, an action of it), or an action by its digest. */
import { refused, type HttpBuildsPorts } from "#doors/build/builds/http-builds.ts";
import { HttpRefusal, methodNotAllowed } from "#doors/build/http/refusal.ts";
import { askWhy, type WhyPorts } from "./ask.ts";

export type HttpWhyPorts = WhyPorts & Pick<HttpBuildsPorts, "caller" | "report">;

export const whyPath = "/api/why";

/** Undefined for other paths. */
export function httpWhy(ports: HttpWhyPorts): (request: Request) => Promise<Response> | undefined {
  return (request) => {
    const url = new URL(request.url);
    if (url.pathname !== whyPath) return undefined;
    return answer(ports, request, url).catch((error: unknown) => refused(error, ports.report));
  };
}

async function answer(ports: HttpWhyPorts, request: Request, { searchParams }: URL): Promise<Response> {
  if (request.method !== "GET") throw methodNotAllowed("GET");
  const who = await ports.caller(request);
  if ("refused" in who) throw new HttpRefusal(who.refused.status, who.refused.message, who.refused.headers);
  const of = searchParams.get("of");
  if (of === null || of === "") throw new HttpRefusal(400, "say of what: ?of=OPERATION, BUILD or ACTION");
  const [key, instance] = [searchParams.get("key") ?? undefined, searchParams.get("instance") ?? undefined];
  return Response.json(await askWhy(ports, { of, key, instance }, { caller: who.caller, signal: request.signal }));
}
