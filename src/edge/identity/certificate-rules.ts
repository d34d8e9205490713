/** Client certificates as principals: the first rule that matches one of the certificate's names counts. */
import { certificatePattern, certificatePatternFits } from "./certificate-pattern.ts";
import type { Identified } from "./identified.ts";
import type { PeerCertificate } from "#edge/tls/peer-certificate.ts";
import { principal, type Role } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";

export type CertificateRule = {
  readonly match: string;
  readonly name?: string | undefined;
  readonly tenant: string;
  readonly roles: readonly Role[];
  readonly pools?: readonly string[] | undefined;
  readonly labels?: readonly string[] | undefined;
};

export type CertificateRules = (certificate: PeerCertificate) => Identified;

const nameLengthMax = 200;

export function certificateRules(rules: readonly CertificateRule[]): CertificateRules {
  const compiled = rules.map((rule) => ({ rule, pattern: certificatePattern(rule.match) }));
  return ({ trusted, names }) => {
    if (!trusted) return unauthenticated("certificate-untrusted");
    for (const { rule, pattern } of compiled) {
      const fitting = names.find((name) => certificatePatternFits(pattern, name));
      if (!fitting) continue;
      const grant = {
        name: rule.name ?? fitting.value.slice(0, nameLengthMax),
        tenant: rule.tenant,
        roles: rule.roles,
        pools: rule.pools,
        labels: rule.labels,
      };
      return { ok: true, principal: principal(grant, "certificate"), untilMs: Infinity };
    }
    return unauthenticated("certificate-unknown");
  };
}
