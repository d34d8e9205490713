/**
 * A certificate says that a wave of a release was found healthy, and on which evidence. It is signed, so that a machine
 * can check it without a node: who can write goals but not sign cannot push a release past its evidence.
 */
import { z } from "zod";
import { isDigest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { KeyRing, Signed } from "#doors/deploy/signing/signing.ts";

const DigestText = z.string().refine(isDigest, "not a digest");

const Certificate = z.strictObject({
  format: z.literal(1),
  service: z.string().max(200),
  release: z.string().max(200),
  wave: z.int().min(0),
  manifest: DigestText,
  /** Of the verdict with what the machines had reported. */
  evidence: DigestText,
});
export type Certified = Omit<z.output<typeof Certificate>, "format">;

export function certificateText({ service, release, wave, manifest, evidence }: Certified): string {
  return JSON.stringify(Certificate.parse({ format: 1, service, release, wave, manifest, evidence }));
}

/** Why it does not certify this wave; undefined: it does. */
export function checkCertificate(
  certificate: Signed,
  expected: Omit<Certified, "manifest"> & { readonly manifest: string | null },
  ring: Pick<KeyRing, "open">,
): string | undefined {
  const of = `the certificate of wave ${expected.wave}`;
  let body: string;
  try {
    body = ring.open(certificate, "certificate");
  } catch (error) {
    if (!isFault(error)) throw error;
    return `${of} does not count: ${error.message}`;
  }
  const parsed = Certificate.safeParse(JSON.parse(body));
  if (!parsed.success) return `${of} is malformed`;
  for (const field of ["service", "release", "wave", "manifest", "evidence"] as const)
    if (parsed.data[field] !== expected[field])
      return `${of} is for the ${field} ${parsed.data[field]}, not for ${expected[field]}`;
  return undefined;
}
