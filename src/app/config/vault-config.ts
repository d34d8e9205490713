/** Where the keys come from that encrypt secrets at rest. */
import { z } from "zod";

export const VaultConfig = z
  .strictObject({
    keyFile: z
      .string()
      .min(1)
      .optional()
      .describe("A file with the keys that encrypt secrets, one `<id> <key>` a line, closed to other users."),
    keyVariable: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable")
      .optional()
      .describe("An environment variable that holds those lines."),
    keyCommand: z
      .array(z.string().min(1))
      .min(1)
      .max(50)
      .optional()
      .describe('A command that prints those lines, such as ["vault-agent", "print", "millrace"].'),
  })
  .superRefine(({ keyFile, keyVariable, keyCommand }, context) => {
    if ([keyFile, keyVariable, keyCommand].filter((given) => given !== undefined).length > 1)
      context.addIssue({ code: "custom", message: "name one source of keys: keyFile, keyVariable or keyCommand" });
  });

export type VaultConfig = z.output<typeof VaultConfig>;
