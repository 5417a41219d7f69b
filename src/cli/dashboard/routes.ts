/**
 * The page's paths.
 * @module
 */

import { type Context, Hono, type MiddlewareHandler } from "hono";
import { CONTENT_SECURITY_POLICY, renderPage } from "./page.ts";
import { SCRIPT } from "./script.ts";
import type { StateStream } from "./state_stream.ts";
import { STYLE } from "./style.ts";

/** Where the page's own files are; Kubernetes has no such path. */
export const DASHBOARD_PATH: string = "/dashboard";

/** Options of {@linkcode dashboard}. */
export interface DashboardOptions {
  readonly stream: StateStream;
  /** Runs before every answer; refuses by answering itself. */
  readonly guard: MiddlewareHandler;
  /** What a program that asks for `/` is told: the paths there are. */
  readonly paths: readonly string[];
}

/** Makes the app that serves the page: `/` for browsers, and its files below {@linkcode DASHBOARD_PATH}. */
export function dashboard(options: DashboardOptions): Hono {
  const { stream, guard, paths } = options;
  const app = new Hono();
  app.use("/", guard);
  app.use(`${DASHBOARD_PATH}/*`, guard);
  app.get("/", (c) => {
    c.header("Vary", "Accept");
    // As an API server: programs get the list of paths.
    if (!wantsPage(c)) return c.json({ paths });
    return secured(c, renderPage(stream.message()), "text/html; charset=utf-8");
  });
  app.get(`${DASHBOARD_PATH}/style.css`, (c) => secured(c, STYLE, "text/css; charset=utf-8"));
  app.get(`${DASHBOARD_PATH}/script.js`, (c) => secured(c, SCRIPT, "text/javascript; charset=utf-8"));
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
