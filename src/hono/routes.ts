/** All routes. */

import type { Context } from "hono";
import { apiRoute } from "./api_routes.ts";
import { askedOfPath } from "./request/gate.ts";
import { matchesRoute, type MediaType } from "../protocol/accept.ts";
import { refusedTimeout } from "../protocol/list_query.ts";
import { isStatus, methodNotAllowed, noRouteProduces } from "../protocol/statuses.ts";
import { alive, checksOf, ready } from "./health/health.ts";
import { indexRoute } from "./index_routes.ts";
import type { ReadApiState } from "./read_api_state.ts";
import { documentResponse, pageNotFound } from "./send/responses.ts";
import type { PlainRoute, ReaderRoute, Route } from "./route.ts";

/**
 * The paths that are answered whatever readers there are: health, and what shows that their limits are
 * reached.
 */
export const PLAIN_ROUTES: Readonly<Record<string, PlainRoute>> = {
  "/healthz": aliveRoute("/healthz"),
  "/livez": aliveRoute("/livez"),
  "/readyz": readyRoute,
  "/healthz/ping": pingRoute,
  "/livez/ping": pingRoute,
  "/readyz/ping": pingRoute,
  "/healthz/*": noRoute,
  "/livez/*": noRoute,
  "/readyz/*": noRoute,
  "/version": versionRoute,
  "/version/": versionRoute,
  "/metrics": metricsRoute,
};

/** The paths at which a request counts as a reader. */
export const READER_ROUTES: Readonly<Record<string, ReaderRoute>> = {
  "/api/*": apiRoute,
  "/apis/*": apiRoute,
  "/openapi/*": apiRoute,
  "/indices/*": indexRoute,
};

function aliveRoute(path: string): PlainRoute {
  return (c) => ({ access: "open", answer: () => alive(c.req.query("verbose") !== undefined && path) });
}

function pingRoute(): Route {
  return { access: "open", answer: () => alive() };
}

function noRoute(): Route {
  return { access: "open", answer: pageNotFound };
}

function metricsRoute(c: Context, state: ReadApiState): Route | undefined {
  const { metrics } = state;
  const { method } = c.req.raw;
  if (metrics === undefined || (method !== "GET" && method !== "HEAD")) return undefined;
  return { access: "hooks", asked: askedOfPath("/metrics"), answer: () => metrics.page(state) };
}

/** `/readyz`: open, but only users that may read this path receive names. */
function readyRoute(c: Context, { gate, served, readers, settings }: ReadApiState): Route {
  return {
    access: "open",
    answer: async () => {
      readers.dropUnused();
      const checks = checksOf({ served, readers, maxLagMs: settings.maxLagMs });
      const verbose = c.req.query("verbose") !== undefined;
      const hasNames = verbose || checks.some(({ problem }) => problem !== undefined);
      const mayName = hasNames && !isStatus(await gate(askedOfPath("/readyz"), c));
      return ready(checks, { verbose: verbose && mayName, mayName });
    },
  };
}

const VERSION_TYPES: readonly MediaType[] = ["application/json"];

/** `/version`: open, as an API server's. */
function versionRoute(c: Context, { settings }: ReadApiState): Route {
  return {
    access: "open",
    answer: () => {
      const refused = refusedTimeout(new URL(c.req.url).searchParams);
      if (refused !== undefined) return refused;
      if (c.req.raw.method !== "GET") return methodNotAllowed();
      if (!matchesRoute(c.req.header("Accept"), VERSION_TYPES)) return noRouteProduces(VERSION_TYPES);
      return documentResponse(settings.version, { mediaType: "application/json", pretty: true });
    },
  };
}
