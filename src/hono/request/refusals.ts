/** Requests that are refused, whatever the content is. */

import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { resourceDetails } from "../../protocol/statuses.ts";

/** 403: a page of another site wants a WebSocket with what the browser knows of its user. */
export function foreignPage(): Status {
  return newStatus(
    403,
    "Forbidden",
    "pages of this origin may not open WebSockets here: the option `cors` names those that may",
    {},
  );
}

/** 429: there are too many readers. */
export function tooManyRequests(): Status {
  return newStatus(
    429,
    "TooManyRequests",
    "Too many requests are being answered, please try again later.",
    { retryAfterSeconds: 1 },
  );
}

/** 405: a write. */
export function readOnly(resource: ApiResource): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache of ${formatGroupResource(resource)}: get, list and watch are served here; ` +
      "send writes to the API server itself",
    resourceDetails(resource),
  );
}

// What the commands of kubectl need.
const COMMANDS: Readonly<Record<string, string>> = {
  attach: "kubectl attach",
  ephemeralcontainers: "kubectl debug",
  eviction: "kubectl drain",
  exec: "kubectl exec",
  log: "kubectl logs",
  portforward: "kubectl port-forward",
  proxy: "kubectl proxy",
  token: "kubectl create token",
};

/** 405: a subresource that is a write, or a connection to a node. */
export function notServed(resource: ApiResource, subresource: string): Status {
  const command = COMMANDS[subresource];
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache of ${formatGroupResource(resource)}: "${subresource}"` +
      `${command === undefined ? "" : ` (${command})`} is not served here; send it to the API server itself`,
    resourceDetails(resource),
  );
}

/** 405: a connection for a shell, a port or the like. */
export function noTunnel(subresource: string): Status {
  const command = COMMANDS[subresource];
  const what = command === undefined ? "this request" : `"${subresource}" (${command})`;
  return newStatus(
    405,
    "MethodNotAllowed",
    `${what} needs a tunnel, which a cache does not open; send it to the API server itself`,
    {},
  );
}

/** 405: a write of a resource that the cache does not hold. */
export function notHeld(resource: { readonly group: string; readonly resource: string }): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache, which does not hold ${formatGroupResource(resource)}; ` +
      "send the request to the API server itself",
    resourceDetails(resource),
  );
}

/** 405: a question about permissions, which only the API server answers. */
export function noReviews(resource: { readonly group: string; readonly resource: string }): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache: to create ${
      formatGroupResource(resource)
    } here it needs serve --pass-through, or ` +
      "the option `passThrough` of readApi; otherwise ask the API server itself",
    resourceDetails(resource),
  );
}

/** 400, if no object can have the name. */
export function nameProblem(name: string): Status | undefined {
  const reason = name === "." || name === ".."
    ? `may not be '${name}'`
    : name.includes("%")
    ? "may not contain '%'"
    : undefined;
  return reason === undefined
    ? undefined
    : newStatus(400, "BadRequest", `Name parameter invalid: ${JSON.stringify(name)}: ${reason}`);
}
