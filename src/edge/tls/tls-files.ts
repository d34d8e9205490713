/** A node's certificate, key and authorities, read from files and checked before anything is served with them. */
import { constants, createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { createSecureContext, type SecureContextOptions, type TlsOptions } from "node:tls";
import { Fault } from "#base/fault.ts";
import { readSmallFile } from "./small-file.ts";
import type { Tls } from "./tls-config.ts";

export type LoadedTls = {
  readonly context: SecureContextOptions;
  /** When the node's own certificate expires, for a warning and a metric. */
  readonly expiresAtMs: number;
};

const doing = "load TLS files";

/**
 * For TLS 1.3 the defaults; for 1.2 only those that HTTP/2 allows (RFC 9113, 9.2.2): ephemeral keys for every
 * connection, and authenticated encryption.
 */
const ciphers = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

export async function loadTls(config: Tls): Promise<LoadedTls> {
  const [cert, key, ca] = await Promise.all([
    readSmallFile(config.certificate, doing),
    readSmallFile(config.key, doing),
    config.clientCa === undefined ? undefined : readSmallFile(config.clientCa, doing),
  ]);
  const certificate = readCertificate(cert, config.certificate);
  const privateKey = readKey(key, config.key);
  if (!certificate.checkPrivateKey(privateKey))
    throw new Fault("invalid", doing, {
      certificate: config.certificate,
      key: config.key,
      why: "the key does not belong to the certificate; the node's own certificate must be the first in its file",
    });
  if (ca !== undefined && config.clientCa !== undefined) readCertificate(ca, config.clientCa);
  const context: SecureContextOptions = {
    cert,
    key,
    ...(ca === undefined ? {} : { ca }),
    minVersion: "TLSv1.2",
    ciphers,
    honorCipherOrder: true,
    // A client must not be able to renegotiate keys again and again over one connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
  try {
    createSecureContext(context);
  } catch (cause) {
    throw new Fault("invalid", doing, { certificate: config.certificate, why: reason(cause) }, cause);
  }
  return { context, expiresAtMs: certificate.validToDate.getTime() };
}

/** What a server needs besides the context; these cannot change while it runs. */
export const tlsServerOptions = (config: Tls): TlsOptions => ({
  ALPNProtocols: ["h2", "http/1.1"],
  // An untrusted certificate does not end the handshake if other credentials are possible: the authenticator sees that
  // it is not trusted and answers with a reason.
  requestCert: config.clientCa !== undefined,
  rejectUnauthorized: config.clientCertificate === "required",
});

function readCertificate(pem: string, file: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    const why = pem.includes("PRIVATE KEY")
      ? "this is a key, not a certificate; are the two settings swapped?"
      : 'it is not a PEM certificate; it should begin with "-----BEGIN CERTIFICATE-----"';
    throw new Fault("invalid", doing, { file, why }, cause);
  }
}

function readKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const why = /ENCRYPTED/.test(pem)
      ? "it needs a passphrase; write one without, readable by this user only: openssl pkey -in old.pem -out new.pem"
      : pem.includes("CERTIFICATE")
        ? "this is a certificate, not a key; are the two settings swapped?"
        : 'it is not a PEM key; it should begin with "-----BEGIN PRIVATE KEY-----"';
    // The cause may quote what it could not parse: a key must not get into a log.
    throw new Fault("invalid", doing, { file, why }, new Error((cause as NodeJS.ErrnoException).code ?? "unreadable"));
  }
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause)).slice(0, 200);
