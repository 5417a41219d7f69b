/** The state behind the page. */

import { type Context, Hono } from "hono";
import { answerReader } from "../../hono/read_api.ts";
import type { ReadApiState } from "../../hono/read_api_state.ts";
import type { Asked, Permission } from "../../hono/request/gate.ts";
import type { Reader } from "../../hono/request/readers.ts";
import { tooManyRequests } from "../../hono/request/refusals.ts";
import type { Answer } from "../../hono/route.ts";
import { EVENT_STREAM_TYPE } from "../../hono/send/event_stream.ts";
import { textAnswer } from "../../hono/send/responses.ts";
import { watchResponse } from "../../hono/send/watch_answer.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { ChangeFeed } from "./change_feed.ts";
import type { ClusterInfo, DashboardMessage } from "./dashboard_message.ts";
import { DashboardCounter } from "./dashboard_state.ts";
import { ObjectSearch } from "./object_search.ts";
import { PAGE, SCRIPT, STYLE } from "./page_bundle.ts";
import type { ReflectedResource } from "../cluster/reflect.ts";
import { StateStream } from "./state_stream.ts";

export interface DashboardOptions {
  readonly cluster: ClusterInfo;
  readonly watches: (resource: ReflectedResource) => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Observes informers, and sends their counts and changes to open pages. */
export class Dashboard {
  readonly stream: StateStream;
  /** Finds objects by words of their names. */
  readonly search: ObjectSearch;
  readonly #feed: ChangeFeed;
  readonly #unlisten: (() => void)[];

  constructor(resources: readonly ReflectedResource[], options: DashboardOptions) {
    const { cluster, watches, clock, logger } = options;
    this.search = new ObjectSearch(resources);
    const startedMs = clock.now();
    const report = newViewReports(logger);
    const counter = new DashboardCounter(resources, { onError: report, watches });
    this.#feed = new ChangeFeed(resources, {
      clock,
      onChange: (resource) => {
        counter.changed(resource);
        this.stream.changed();
      },
      onError: (error) => report("changes", error),
    });
    this.stream = new StateStream({
      state: () => ({
        nowMs: clock.now(),
        startedMs,
        cluster,
        changesPerSecond: this.#feed.changesPerSecond(),
        ...counter.count(),
      }),
      feed: this.#feed,
      clock,
      onError: (error) => report("state", error),
    });
    this.#unlisten = resources.map(({ informer }) => informer.onStatus(() => this.stream.changed()));
  }

  close(): void {
    this.#feed.close();
    for (const unlisten of this.#unlisten.splice(0)) unlisten();
  }
}

/** Logs the first error of each part of the page. */
function newViewReports(logger: Logger): (view: string, error: unknown) => void {
  const logged = new Set<string>();
  return (view, error) => {
    if (logged.has(view)) return;
    logged.add(view);
    logger.error(`The page cannot show all ${view}: ${errorMessage(error)}`, { error });
  };
}

/** The path of the page's files; Kubernetes does not use it. */
const DASHBOARD_PATH: string = "/dashboard";

export interface DashboardRoutesOptions {
  readonly dashboard: Dashboard;
  readonly asked: readonly Asked[];
  readonly paths: readonly string[];
}

interface PageRequest {
  readonly c: Context;
  readonly permission: Permission;
  readonly reader: Reader;
}

/**
 * Makes the routes: the page at `/` for browsers, and its files below {@linkcode DASHBOARD_PATH}. Their
 * readers are readers of the read API: its hooks decide, its limits hold for them, and the stream of a page
 * is one of their watches.
 */
export function dashboardRoutes(state: ReadApiState, options: DashboardRoutesOptions): Hono {
  const { dashboard, asked, paths } = options;
  const { settings, readers } = state;
  const app = new Hono();
  const get = (
    path: string,
    answer: (request: PageRequest) => Answer | Promise<Answer>,
    { isWatch = false } = {},
  ): void => {
    app.get(path, async (c) => {
      const response = await answerReader(c, state, (_c, _state, reader) => ({
        access: "hooks",
        asked,
        isWatch: isWatch && !isHead(c),
        answer: (permission) => answer({ c, permission, reader }),
      }));
      return response.status < 400 ? response : await refusal(c, response);
    });
  };
  get("/", ({ c, reader }) => {
    // Programs receive the list of paths, as from an API server.
    if (!wantsPage(c)) {
      const headers = { "Content-Type": "application/json", Vary: "Accept" };
      return textAnswer(reader, JSON.stringify({ paths }), { headers });
    }
    const page = renderPage(dashboard.stream.message());
    return secured(reader, page, "text/html; charset=utf-8", { Vary: "Accept" });
  });
  get(`${DASHBOARD_PATH}/style.css`, ({ reader }) => secured(reader, STYLE, "text/css; charset=utf-8"));
  get(
    `${DASHBOARD_PATH}/script.js`,
    ({ reader }) => secured(reader, SCRIPT, "text/javascript; charset=utf-8"),
  );
  get(`${DASHBOARD_PATH}/search`, async ({ c, permission: { user }, reader }) => {
    const { signal } = c.req.raw;
    const client = settings.clientOf(c, user);
    const query = c.req.query("q") ?? "";
    const found = await dashboard.search.find(query, { client, pacer: state.pacer, signal });
    return found === undefined
      ? tooManyRequests()
      : secured(reader, JSON.stringify(found), "application/json");
  });
  get(`${DASHBOARD_PATH}/events`, ({ c, permission, reader }) => {
    const limits = { limitMs: settings.watchLimitMs(), recheckMs: settings.watchRecheckMs };
    const body = isHead(c)
      ? new Blob([]).stream()
      : dashboard.stream.open({ permission, reader, readers, ...limits });
    return withHeaders(watchResponse(body, EVENT_STREAM_TYPE), SECURITY_HEADERS);
  }, { isWatch: true });
  return app;
}

/** Whether there is no body to send. Hono answers it as a GET. */
function isHead(c: Context): boolean {
  return c.req.raw.method === "HEAD";
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
  return c.text(`This page shows everything in the cache: ${message}.\n`, 403);
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
export function renderPage(message: DashboardMessage): string {
  return PAGE.replace(STATE, () => inScript(message));
}

/** What stands in the document for the state: a text of JSON. */
const STATE = '"STATE"';

/** JSON that can neither end its script element nor start a comment in it. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replace(/</g, "\\u003c").replace(/\u2028/g, "\\u2028").replace(
    /\u2029/g,
    "\\u2029",
  );
}

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

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
