/** Columns of the groups policy and rbac.authorization.k8s.io. */

import {
  AGE,
  type Cell,
  CREATED_AT,
  INTEGER,
  integer,
  NAME,
  type Printer,
  printer,
  WIDE,
} from "./columns.ts";
import { at, itemsAt, scalarText, textAt } from "./fields.ts";

const subjects = (kind: string): Cell => (binding) =>
  itemsAt(binding, "subjects").filter((subject) => at(subject, "kind") === kind).map((subject) => {
    const name = textAt(subject, "name");
    return kind === "ServiceAccount" ? `${textAt(subject, "namespace")}/${name}` : name;
  }).join(", ");

const roleBindings = printer(
  NAME,
  ["Role", "The role.", (object) => `${textAt(object, "roleRef.kind")}/${textAt(object, "roleRef.name")}`],
  AGE,
  ["Users", "The users that have the role.", subjects("User"), WIDE],
  ["Groups", "The groups that have the role.", subjects("Group"), WIDE],
  ["ServiceAccounts", "The service accounts that have the role.", subjects("ServiceAccount"), WIDE],
);

export const POLICY_PRINTERS: Readonly<Record<string, Printer>> = {
  "policy/poddisruptionbudgets": printer(
    NAME,
    [
      "Min Available",
      "How many pods must stay available.",
      (object) => scalarText(at(object, "spec.minAvailable"), "N/A"),
    ],
    [
      "Max Unavailable",
      "How many pods may be unavailable.",
      (object) => scalarText(at(object, "spec.maxUnavailable"), "N/A"),
    ],
    [
      "Allowed Disruptions",
      "How many pods may be evicted now.",
      integer("status.disruptionsAllowed"),
      INTEGER,
    ],
    AGE,
  ),
  "rbac.authorization.k8s.io/clusterrolebindings": roleBindings,
  "rbac.authorization.k8s.io/clusterroles": printer(NAME, CREATED_AT),
  "rbac.authorization.k8s.io/rolebindings": roleBindings,
  "rbac.authorization.k8s.io/roles": printer(NAME, CREATED_AT),
};
