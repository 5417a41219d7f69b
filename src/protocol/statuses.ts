/** The refusals of an API server, in its words. */

import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { quotedByGo } from "./go_text.ts";

/** A resource without its version. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Whether an answer is a refusal. */
export function isStatus(value: object): value is Status {
  return "kind" in value && value.kind === "Status";
}

/** The details that name a resource; the `kind` of a Status is the name of the resource. */
export function resourceDetails(
  { group, resource }: GroupResource,
): { readonly group?: string; readonly kind: string } {
  return { ...(group !== "" && { group }), kind: resource };
}

/** 404: there is no such path. */
export function unknownPath(): Status {
  return newStatus(404, "NotFound", "the server could not find the requested resource", {});
}

/** 404: there is no such object. */
export function objectNotFound(of: GroupResource, name: string): Status {
  const message = `${formatGroupResource(of)} ${quotedByGo(name)} not found`;
  return newStatus(404, "NotFound", message, { name, ...resourceDetails(of) });
}

/** 405: the path exists, the method does not. */
export function methodNotAllowed(): Status {
  const message = "the server does not allow this method on the requested resource";
  return newStatus(405, "MethodNotAllowed", message, {});
}

/** 406: the server has no representation that the `Accept` header names. */
export function notAcceptable(mediaTypes: readonly string[]): Status {
  const message = `only the following media types are accepted: ${mediaTypes.join(", ")}`;
  return newStatus(406, "NotAcceptable", message);
}

/** 406: no route produces what the `Accept` header names. */
export function noRouteProduces(mediaTypes: readonly string[]): Status {
  const message = `406: Not Acceptable\n\nAvailable representations: ${mediaTypes.join(", ")}`;
  return newStatus(406, "NotAcceptable", message, {});
}

/** 410: a watch from a resourceVersion that is older than the event history. */
export function watchTooOld(asked: string, oldest: string): Status {
  return newStatus(410, "Expired", `too old resource version: ${asked} (${oldest})`);
}

/**
 * 410: a `continue` token whose state is no longer known, with a token that continues at the newest state.
 */
export function continueTooOld(token: string): Status {
  const message =
    "The provided continue parameter is too old to display a consistent list result. You can start a " +
    "new list without the continue parameter, or use the continue token in this response to retrieve the remainder " +
    "of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
    "created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  return { ...newStatus(410, "Expired", message), metadata: { continue: token } };
}

/** 504: a resourceVersion that the server has not reached. */
export function tooLargeResourceVersion(asked: string, current: string): Status {
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  return newStatus(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}
