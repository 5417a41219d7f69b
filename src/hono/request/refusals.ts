/** Requests that are refused, whatever the content is. */

import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { type GroupResource, quotedByGo, resourceDetails } from "../../protocol/statuses.ts";

/** 403: a page of another site wants a WebSocket with what the browser knows of its user. */
export function foreignPage(): Status {
  const message = "pages of this origin may not open WebSockets here: the option `cors` names those that may";
  return newStatus(403, "Forbidden", message, {});
}

export function tooManyRequests(): Status {
  const message = "Too many requests are being answered, please try again later.";
  return newStatus(429, "TooManyRequests", message, { retryAfterSeconds: 1 });
}

/** 500: what an answer is made of cannot be read, or a defect. Readers do not get the error's text. */
export function failed(): Status {
  const message = "Internal error occurred: the cache cannot read what it needs to answer; its log says why";
  return newStatus(500, "InternalError", message);
}

function notAllowed(message: string, of?: GroupResource): Status {
  return newStatus(405, "MethodNotAllowed", message, of === undefined ? {} : resourceDetails(of));
}

/** 405: a write. */
export function readOnly(of: GroupResource): Status {
  const why = `this is a read-only cache of ${formatGroupResource(of)}`;
  return notAllowed(`${why}: get, list and watch are served here; send writes to the API server itself`, of);
}

// The kubectl commands that need a subresource.
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
export function notServed(of: GroupResource, subresource: string): Status {
  const command = COMMANDS[subresource];
  const what = `"${subresource}"${command === undefined ? "" : ` (${command})`} is not served here`;
  const why = `this is a read-only cache of ${formatGroupResource(of)}: ${what}`;
  return notAllowed(`${why}; send it to the API server itself`, of);
}

/** 405: a connection for a shell, a port or the like. */
export function noTunnel(subresource: string): Status {
  const command = COMMANDS[subresource];
  const what = command === undefined ? "this request" : `"${subresource}" (${command})`;
  return notAllowed(`${what} needs a tunnel, which a cache does not open; send it to the API server itself`);
}

/** 405: a write of a resource that the cache does not hold. */
export function notHeld(of: GroupResource): Status {
  const why = `this is a read-only cache, which does not hold ${formatGroupResource(of)}`;
  return notAllowed(`${why}; send the request to the API server itself`, of);
}

/** 405: a question about permissions, which only the API server answers. */
export function noReviews(of: GroupResource): Status {
  const needs = "it needs serve --pass-through, or the option `passThrough` of readApi";
  const why = `this is a read-only cache: to create ${formatGroupResource(of)} here ${needs}`;
  return notAllowed(`${why}; otherwise ask the API server itself`, of);
}

/** 400, if no object can have the name, as it is no segment of a path. */
export function nameProblem(name: string): Status | undefined {
  const isDots = name === "." || name === "..";
  if (!isDots && !/[%/]/.test(name)) return undefined;
  const reason = isDots ? `may not be '${name}'` : `may not contain '${name.includes("/") ? "/" : "%"}'`;
  return newStatus(400, "BadRequest", `Name parameter invalid: ${quotedByGo(name)}: ${reason}`);
}
