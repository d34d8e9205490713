/** The settings of TLS: files, and how client certificates are treated. */
import { z } from "zod";
import { Duration, File } from "#base/config-words.ts";

export const Tls = z
  .strictObject({
    certificate: File.describe("The node's certificate chain as PEM, the node's own certificate first."),
    key: File.describe("The certificate's private key, as PEM, without a passphrase."),
    clientCa: File.optional().describe(
      "The authorities that sign client certificates, as PEM. Left out: clients are not asked for one.",
    ),
    clientCertificate: z
      .enum(["optional", "required"])
      .default("optional")
      .describe("With clientCa: whether a caller without a certificate may use other credentials."),
    reload: Duration({ min: "1s", max: "1d" })
      .prefault("30s")
      .describe("How often to check whether a file has changed. New connections get the new certificate."),
  })
  .superRefine(({ clientCa, clientCertificate }, context) => {
    if (clientCertificate === "required" && clientCa === undefined)
      context.addIssue({ code: "custom", path: ["clientCa"], message: "required client certificates need a clientCa" });
  });

export type Tls = z.output<typeof Tls>;
