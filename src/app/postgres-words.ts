/** How the configuration names a PostgreSQL server and its schema. */
import { z } from "zod";

export const PostgresUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, "write postgres://user:password@host:port/database")
  .describe("The password in it is never printed.");

export const PostgresSchema = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,62}$/, "write lower-case letters, digits and underscores")
  .default("millrace");
