/** Addresses that work without a token: they say what may be done until when, and carry a proof of it. */
import { Problem } from "#http/problem.ts";
import type { Seal } from "./seal.ts";

/** What an address is for. */
export type Signed = {
  readonly does: "upload" | "download";
  readonly tenant: string;
  /** Of the upload, or of the content. */
  readonly id: string;
  /** The last part of the path, which clients take for the file's name. */
  readonly fileName: string;
};

export const signedPrefix = "/ci/files/";

/** Clients append parameters with `&`, and hide a parameter called `sig` in their logs. */
export async function signedAddress(
  seal: Seal,
  origin: string,
  { does, tenant, id, fileName }: Signed,
  untilMs: number,
): Promise<string> {
  const path = `${signedPrefix}${does}/${encodeURIComponent(tenant)}/${id}/${encodeURIComponent(fileName)}`;
  return `${origin}${path}?se=${untilMs}&sig=${await seal.mark(`${path} ${untilMs}`)}`;
}

const shape = /^\/ci\/files\/(upload|download)\/([^/]{1,300})\/([A-Za-z0-9_.-]{1,200})\/([^/]{1,2000})$/;

/** What the address allows. Throws Problem 403 if its proof is wrong or its time has passed. */
export async function openSigned(seal: Seal, { pathname, searchParams }: URL, wallMs: number): Promise<Signed> {
  const match = shape.exec(pathname);
  if (!match) throw new Problem(404, "there is no upload or download at this address");
  const [, does = "", tenant = "", id = "", fileName = ""] = match;
  const until = searchParams.get("se") ?? "";
  if (!/^\d{1,15}$/.test(until) || !(await seal.isMark(`${pathname} ${until}`, searchParams.get("sig") ?? "")))
    throw new Problem(403, "the address was not made by this cluster, or was changed");
  if (Number(until) <= wallMs) throw new Problem(403, "the address has expired: ask for a new one");
  return {
    does: does as Signed["does"],
    tenant: decodeURIComponent(tenant),
    id,
    fileName: decodeURIComponent(fileName),
  };
}
