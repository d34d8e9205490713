/** `shared.db`: entries and records, which all processes of a machine share and no decision of a shard reads. */
import { entriesSchema } from "./entries.ts";
import { recordsSchema } from "./records.ts";

export const sharedVersion = 2;

export const sharedSchema = `${entriesSchema} ${recordsSchema}`;

export const sharedUpgrades = [recordsSchema];
