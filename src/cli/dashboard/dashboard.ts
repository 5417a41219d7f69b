/** The page: its files, and how the cached resources are doing. */

import { type Context, Hono } from "hono";
import { answerReader } from "../../hono/read_api.ts";
import type { ReadApiState } from "../../hono/read_api_state.ts";
import type { Answer, Asked } from "../../hono/request/gate.ts";
import type { Reader } from "../../hono/request/readers.ts";
import { textAnswer } from "../../hono/send/responses.ts";
import { resourcePath } from "../../meta/resource.ts";
import { escaped } from "../../protocol/representations.ts";
import type { DashboardState, ResourceState } from "./dashboard_message.ts";
import { PAGE, SCRIPT, STYLE } from "./page_bundle.ts";
import { visibleText } from "../../util/logger.ts";
import type { ReflectedResource } from "../cluster/select_resources.ts";
import { briefReason } from "../errors.ts";

/** The path of the page's files; Kubernetes does not use it. */
const DASHBOARD_PATH = "/dashboard";

/**
 * Makes the routes: the page at `/` for browsers, and its files below {@linkcode DASHBOARD_PATH}. Their
 * readers are readers of the read API: its hooks decide, and its limits hold for them. Objects are read
 * through the read API itself.
 */
export function dashboardRoutes(
  api: ReadApiState,
  state: () => DashboardState,
  asked: readonly Asked[],
  paths: readonly string[],
): Hono {
  const app = new Hono();
  const get = (path: string, answer: (c: Context, reader: Reader) => Answer): void => {
    app.get(path, async (c) => {
      const response = await answerReader(c, api, (_c, _api, reader) => ({
        access: "hooks",
        asked,
        answer: () => answer(c, reader),
      }));
      return response.status < 400 ? response : await refusal(c, response);
    });
  };
  get("/", (c, reader) => {
    // Programs receive the list of paths, as from an API server.
    if (!wantsPage(c)) {
      const headers = { "Content-Type": "application/json", Vary: "Accept" };
      return textAnswer(reader, JSON.stringify({ paths }), { headers });
    }
    return secured(reader, renderPage(state()), "text/html; charset=utf-8", { Vary: "Accept" });
  });
  const file = (path: string, text: string, type: string) =>
    get(`${DASHBOARD_PATH}/${path}`, (_, reader) => secured(reader, text, `${type}; charset=utf-8`));
  file("style.css", STYLE, "text/css");
  file("script.js", SCRIPT, "text/javascript");
  get(`${DASHBOARD_PATH}/state`, (_, reader) => secured(reader, JSON.stringify(state()), "application/json"));
  return app;
}

function wantsPage(c: Context): boolean {
  return (c.req.header("Accept") ?? "").includes("text/html");
}

/** A refusal: as text for people, and for browsers with the question for a token. */
async function refusal(c: Context, response: Response): Promise<Response> {
  const { status } = response;
  if (status === 401) {
    const text = "Send the token as bearer token, or as password with any user name.\n";
    return c.text(text, 401, {
      "WWW-Authenticate": 'Basic realm="listwatch: any user name, the token as password"',
    });
  }
  if (status !== 403 || !wantsPage(c)) return response;
  const { message } = await response.json();
  return c.text(
    `This page shows everything in the cache, of which you may not read everything: ${message}.\n`,
    403,
  );
}

/**
 * Allows no other origin, no inline script or style, and no frame. The state in the document is data: a
 * script element of a type that is not executed.
 */
export const CONTENT_SECURITY_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Renders the document with the present state, so that the first paint is complete. */
export function renderPage(state: DashboardState): string {
  // The escaped state can neither end its script element nor start a comment in it.
  return PAGE.replace(STATE, () => escaped(JSON.stringify(state)));
}

/** The place of the state in the document: a text of JSON. */
const STATE = '"STATE"';

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
};

function secured(
  reader: Reader,
  body: string,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return textAnswer(reader, body, {
    headers: { ...SECURITY_HEADERS, "Content-Type": type, "Cache-Control": "no-store", ...headers },
  });
}

/** The present state of a resource; `watches` are the open ones of its readers. */
export function resourceState(reflected: ReflectedResource, watches: number): ResourceState {
  const { name, resource, informer } = reflected;
  // The paths of snapshots are not for readers.
  const { snapshot: _, ...status } = informer.status();
  const { lastError } = status;
  return {
    ...status,
    ...(lastError && { lastError: { ...lastError, message: briefReason(lastError) } }),
    name: shownName(name),
    kind: shownName(resource.kind),
    shortNames: (resource.shortNames ?? []).map(shownName),
    path: resourcePath(resource),
    namespaced: resource.namespaced,
    objects: informer.indexer.size,
    synced: informer.hasSynced(),
    resourceVersion: informer.indexer.lastStoreSyncResourceVersion(),
    watches,
  };
}

// The longest namespace has 63 characters.
const LONGEST_NAME = 64;

export function shownName(name: string): string {
  return visibleText(name, LONGEST_NAME);
}
