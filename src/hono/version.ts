/**
 * `/version`.
 * @module
 */

import type { Context } from "hono";
import { matchesRoute, type MediaType } from "../protocol/accept.ts";
import { methodNotAllowed, noRouteProduces } from "../protocol/statuses.ts";
import type { ReadApiState } from "./read_api_state.ts";
import { documentResponse } from "./send/responses.ts";
import type { Route } from "./route.ts";

const MEDIA_TYPES: readonly MediaType[] = ["application/json"];

/** `/version`: open, as an API server's. */
export function versionRoute(c: Context, { settings }: ReadApiState): Route {
  return {
    access: "open",
    answer: () => {
      if (c.req.raw.method !== "GET") return methodNotAllowed();
      if (!matchesRoute(c.req.header("Accept"), MEDIA_TYPES)) return noRouteProduces(MEDIA_TYPES);
      return documentResponse(settings.version, { mediaType: "application/json", pretty: true });
    },
  };
}
