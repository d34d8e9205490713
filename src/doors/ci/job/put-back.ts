/**
 * The program that puts back what an earlier attempt at a job kept, with the job's own rights, before the job's program
 * starts. It ends with 0, or the job starts again without it.
 */
import { readFileSync } from "node:fs";
import { putBack } from "#doors/ci/resume/step-keeper.ts";
import { folderVariable, type JobRequest, names } from "./request.ts";

const { keep } = JSON.parse(readFileSync(names.request, "utf8")) as JobRequest;
if (keep?.deltas === undefined) throw new Error("the request names nothing that was kept");
putBack(process.env[folderVariable] ?? process.cwd(), keep.deltas, Buffer.from(keep.key, "base64"));
