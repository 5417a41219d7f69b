/** Columns of the group networking.k8s.io. */

import { AGE, type Cell, NAME, type Printer, printer, text } from "./columns.ts";
import { loadBalancerAddresses } from "./core_printers.ts";
import { at, itemsAt, selectorText, textAt, textsAt } from "./fields.ts";

/** The name, marked if an annotation says that the object is the default of its kind. */
export const defaultName = (...annotations: readonly string[]): Cell => ({ metadata }) => {
  const isDefault = annotations.some((name) => metadata?.annotations?.[name] === "true");
  return `${metadata?.name ?? ""}${isDefault ? " (default)" : ""}`;
};

function hosts(ingress: unknown): string {
  const rules = itemsAt(ingress, "spec.rules");
  const shown: string[] = [];
  // Rules without a host count, too, as soon as three others have been found.
  const rest = rules.findIndex((rule) => {
    if (shown.length === 3) return true;
    const host = textAt(rule, "host");
    if (host !== "") shown.push(host);
    return false;
  });
  if (shown.length === 0) return "*";
  return rest < 0 ? shown.join(",") : `${shown.join(",")} + ${rules.length - 3} more...`;
}

function parameters(ingressClass: unknown): string {
  const reference = at(ingressClass, "spec.parameters");
  if (reference === undefined) return "<none>";
  const group = at(reference, "apiGroup");
  const kind = textAt(reference, "kind") + (typeof group === "string" ? `.${group}` : "");
  return `${kind}/${textAt(reference, "name")}`;
}

function parent(ipAddress: unknown): string {
  const reference = at(ipAddress, "spec.parentRef");
  if (reference === undefined) return "<none>";
  const [group, namespace] = [textAt(reference, "group"), textAt(reference, "namespace")];
  const resource = textAt(reference, "resource") + (group && `.${group}`);
  return `${resource.toLowerCase()}/${namespace && `${namespace}/`}${textAt(reference, "name")}`;
}

const ipAddresses = printer(NAME, ["ParentRef", "The object that uses the address.", parent], AGE);

export const NETWORK_PRINTERS: Readonly<Record<string, Printer>> = {
  "networking.k8s.io/ingressclasses": printer(
    [NAME[0], NAME[1], defaultName("ingressclass.kubernetes.io/is-default-class"), NAME[3]],
    ["Controller", "The controller that handles the class.", text("spec.controller")],
    ["Parameters", "An object with further parameters.", parameters],
    AGE,
  ),
  "networking.k8s.io/ingresses": printer(
    NAME,
    ["Class", "The ingress class.", text("spec.ingressClassName", "<none>")],
    ["Hosts", "The hosts of the rules.", hosts],
    ["Address", "The addresses of the load balancer.", (ingress) => loadBalancerAddresses(ingress).join(",")],
    ["Ports", "The open ports.", (ingress) => itemsAt(ingress, "spec.tls").length > 0 ? "80, 443" : "80"],
    AGE,
  ),
  // The API server sends the age without a column for it.
  "networking.k8s.io/ipaddresses": { ...ipAddresses, columns: ipAddresses.columns.slice(0, 2) },
  "networking.k8s.io/networkpolicies": printer(
    NAME,
    [
      "Pod-Selector",
      "The labels of the pods that the policy is for.",
      (policy) => selectorText(policy, "spec.podSelector") || "<none>",
    ],
    AGE,
  ),
  "networking.k8s.io/servicecidrs": printer(
    NAME,
    ["CIDRs", "The address ranges.", (object) => textsAt(object, "spec.cidrs").join(",")],
    AGE,
  ),
};
