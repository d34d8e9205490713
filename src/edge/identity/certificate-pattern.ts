/** Patterns for the names in client certificates: `<kind>:<value>`, where a star stands for one part of a name. */

export const certificateNameKinds = ["URI", "DNS", "email", "CN", "OU", "O"] as const;
export type CertificateNameKind = (typeof certificateNameKinds)[number];

export type CertificateName = { readonly kind: CertificateNameKind; readonly value: string };

export type CertificatePattern = { readonly kind: CertificateNameKind; readonly value: RegExp };

const shape = /^([A-Za-z]+):(.+)$/s;

export function certificatePatternProblem(text: string): string | undefined {
  const kind = shape.exec(text)?.[1];
  if (kind === undefined || !(certificateNameKinds as readonly string[]).includes(kind))
    return `write ${certificateNameKinds.join(", ")} and a colon before the name, such as "URI:spiffe://acme/worker/*"`;
  if (text.length > 500) return "write at most 500 characters";
  if ((text.match(/\*/g) ?? []).length > 8) return "write at most 8 stars";
  if (/\*\*/.test(text)) return "a star stands for one part of a name: write one, not two";
  if (text === `${kind}:*`) return "a star alone would accept every certificate that the authority ever signed";
  return undefined;
}

/** For a valid pattern. Host names are compared without regard to case. */
export function certificatePattern(text: string): CertificatePattern {
  const [, kind = "", value = ""] = shape.exec(text) ?? [];
  const source = value
    .split("*")
    .map((literal) => RegExp.escape(literal))
    .join("[A-Za-z0-9_-]+");
  return { kind: kind as CertificateNameKind, value: new RegExp(`^${source}$`, kind === "DNS" ? "iu" : "u") };
}

export const certificatePatternFits = (pattern: CertificatePattern, name: CertificateName): boolean =>
  pattern.kind === name.kind && pattern.value.test(name.value);
