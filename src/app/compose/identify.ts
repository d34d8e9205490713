/** Authenticates a request over plain HTTP by its connection and its headers. */
import type { Admission } from "#edge/port/admission.ts";
import type { Peer } from "#edge/port/port.ts";
import type { Identify } from "#http/serve.ts";

export const identifyBy =
  (admission: Admission, peer: Peer): Identify =>
  async ({ headers }) =>
    await admission.identifyRequest(peer, headers, authorizationOf(headers));

/** Build tools that know only user names and passwords send the token as the password. */
function authorizationOf(headers: Headers): string | undefined {
  const given = headers.get("authorization") ?? undefined;
  const basic = given === undefined ? null : /^basic ([A-Za-z0-9+/_=-]{0,8192})$/i.exec(given);
  if (!basic) return given;
  const pair = Buffer.from(basic[1] ?? "", "base64").toString("utf8");
  return `Bearer ${pair.slice(pair.indexOf(":") + 1)}`;
}
