/**
 * What a browser can be made to do to the API: what cross-site.ts refuses everywhere, and more. A page of another site
 * may not even read here, as far as the browser says where a request comes from, and may open no socket. Pure.
 */
import { crossSiteProblem, foreignPage } from "./cross-site.ts";

export type BrowserRequest = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  /** Whether it brought a credential of any kind. A cookie counts: browsers send it to the host that set it only. */
  readonly isProven: boolean;
  /** Whether that was a session's cookie. */
  readonly hasSession?: boolean;
  /** WebSocket upgrades are not bound by the same-origin policy, so they count as changes. */
  readonly isUpgrade?: boolean;
};

/** Why it is refused, or undefined. */
export function browserProblem(request: BrowserRequest): string | undefined {
  const { url, headers, isProven, hasSession = false, isUpgrade = false } = request;
  const method = isUpgrade ? "CONNECT" : request.method;
  const origin = headers.get("origin");
  const why = crossSiteProblem({ method, url: url.href, origin, isUnproven: !isProven, hasSession });
  if (why !== undefined) return why;
  // Browsers say which kind of site asked. Only a person who typed the address ("none") or a page of ours may read.
  const site = headers.get("sec-fetch-site");
  const isForeign = site !== null && site !== "same-origin" && site !== "none";
  return isForeign && !isNavigation(request) ? foreignPage : undefined;
}

/** A link on another site may lead here: the person sees our page, and that page can read nothing of it. */
const isNavigation = ({ method, headers, isUpgrade }: BrowserRequest): boolean =>
  method === "GET" &&
  isUpgrade !== true &&
  headers.get("sec-fetch-mode") === "navigate" &&
  headers.get("sec-fetch-dest") === "document";
