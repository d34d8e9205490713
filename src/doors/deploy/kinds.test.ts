import { match, equal } from "node:assert/strict";
import { test } from "node:test";
import { deployKinds } from "./kinds.ts";

test("waves are approved by approvers and operators, each in its own name", () => {
  const said = (roles: readonly string[], payload = "ada", name = "approve"): string =>
    deployKinds.signal(
      { id: "1", name, payload },
      { name: "ada", isOperator: roles.includes("operator"), roles: new Set(roles) },
    ) ?? "";
  equal(said(["approver"]), "");
  equal(said(["approver"], "ada", "reject"), "");
  equal(said(["operator"]), "");
  match(said(["member"]), /by approvers/);
  match(said(["releaser"]), /by approvers/);
  match(said(["approver"], "bob"), /the name of the sender/);
  match(said(["approver"], "ada", "go"), /approve and reject/);
});
