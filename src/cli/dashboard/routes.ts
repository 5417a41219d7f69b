/**
 * The routes of the page.
 * @module
 */

import { type Context, Hono, type MiddlewareHandler } from "hono";
import { CONTENT_SECURITY_POLICY, renderPage } from "./page.ts";
import type { SearchResult } from "./dashboard_message.ts";
import { SCRIPT, STYLE } from "./page_bundle.ts";
import type { StateStream } from "./state_stream.ts";

/** The path of the page's files; Kubernetes does not use it. */
const DASHBOARD_PATH: string = "/dashboard";

/** Options of {@linkcode dashboardRoutes}. */
export interface DashboardRoutesOptions {
  readonly stream: StateStream;
  /** Finds objects by words of their names. */
  readonly search: (query: string) => SearchResult;
  /** Runs before every response; refuses a request by responding itself. */
  readonly guard: MiddlewareHandler;
  /** The paths that programs receive at `/`. */
  readonly paths: readonly string[];
}

/** Makes the routes: the page at `/` for browsers, and its files below {@linkcode DASHBOARD_PATH}. */
export function dashboardRoutes(options: DashboardRoutesOptions): Hono {
  const { stream, search, guard, paths } = options;
  const app = new Hono();
  app.use("/", guard);
  app.use(`${DASHBOARD_PATH}/*`, guard);
  app.get("/", (c) => {
    c.header("Vary", "Accept");
    // Programs receive the list of paths, as from an API server.
    if (!wantsPage(c)) return c.json({ paths });
    return secured(c, renderPage(stream.message()), "text/html; charset=utf-8");
  });
  app.get(`${DASHBOARD_PATH}/style.css`, (c) => secured(c, STYLE, "text/css; charset=utf-8"));
  app.get(`${DASHBOARD_PATH}/script.js`, (c) => secured(c, SCRIPT, "text/javascript; charset=utf-8"));
  app.get(
    `${DASHBOARD_PATH}/search`,
    (c) => secured(c, JSON.stringify(search(c.req.query("q") ?? "")), "application/json"),
  );
  app.get(`${DASHBOARD_PATH}/events`, (c) => {
    c.header("X-Accel-Buffering", "no");
    return secured(c, stream.open(), "text/event-stream; charset=utf-8");
  });
  return app;
}

function wantsPage(c: Context): boolean {
  return (c.req.header("Accept") ?? "").includes("text/html");
}

function secured(c: Context, body: string | ReadableStream<Uint8Array>, type: string): Response {
  c.header("Content-Type", type);
  c.header("Content-Security-Policy", CONTENT_SECURITY_POLICY);
  c.header("Cache-Control", "no-store");
  c.header("X-Content-Type-Options", "nosniff");
  c.header("Referrer-Policy", "no-referrer");
  c.header("Cross-Origin-Resource-Policy", "same-origin");
  return c.body(body);
}
