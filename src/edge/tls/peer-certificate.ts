/** The names in a client certificate, read once per connection. */
import type { TLSSocket } from "node:tls";
import {
  certificateNameKinds,
  type CertificateName,
  type CertificateNameKind,
} from "#edge/identity/certificate-pattern.ts";

export type PeerCertificate = {
  /** Whether it leads to an authority that the node trusts. The names of an untrusted certificate mean nothing. */
  readonly trusted: boolean;
  readonly names: readonly CertificateName[];
};

const namesMax = 100;

/** Undefined if the caller showed none. */
export function readPeerCertificate(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate();
  if (!certificate || Object.keys(certificate).length === 0) return undefined;
  const alternative = readAlternativeNames(certificate.subjectaltname ?? "");
  return {
    trusted: socket.authorized,
    names: [...alternative, ...subjectNames(certificate.subject)].slice(0, namesMax),
  };
}

/** A field that occurs twice is ambiguous and does not count. */
export function subjectNames(subject: Readonly<Record<string, unknown>> | undefined): readonly CertificateName[] {
  return (["CN", "OU", "O"] as const).flatMap((kind) => {
    const value = subject?.[kind];
    return typeof value === "string" && value !== "" ? [{ kind, value }] : [];
  });
}

/**
 * Node gives alternative names as one text, `DNS:a.example, URI:"..."`, and puts a value into JSON quotes if it has
 * characters that could be taken for the next entry. Parsing stops at anything else: names that a crafted certificate
 * might have injected are not trusted.
 */
export function readAlternativeNames(text: string): readonly CertificateName[] {
  const names: CertificateName[] = [];
  const entry = /([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^",]*))(, |$)/y;
  while (entry.lastIndex < text.length) {
    const found = entry.exec(text);
    if (!found) break;
    const [, kind = "", quoted, plain = ""] = found;
    const value = quoted === undefined ? plain : unquote(quoted);
    if (value === undefined) break;
    if (isKind(kind) && value !== "") names.push({ kind, value });
  }
  return names;
}

const isKind = (kind: string): kind is CertificateNameKind =>
  (certificateNameKinds as readonly string[]).includes(kind) && !["CN", "OU", "O"].includes(kind);

function unquote(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
