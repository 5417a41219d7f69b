/** What a request asks for, and how it is answered once it may be. */

import type { Context } from "hono";
import type { Status } from "../meta/status.ts";
import type { Asked, Permission, UserInfo } from "./request/gate.ts";
import type { ReadApiState, ServedResource } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";

export type Answer = Response | Status;

/**
 * What a request asks for, and how it is answered once it may be. Nothing is read before: what a route
 * answers with, 404 and 400 included, is made by `answer`.
 */
export type Route =
  | {
    /** The hooks decide. */
    readonly access: "hooks";
    readonly asked: Asked | readonly Asked[];
    /** The resource whose freshness the headers of the answer show. */
    readonly target?: ServedResource;
    /** Whether it is a watch, which a WebSocket may have. */
    readonly isWatch?: boolean;
    answer(permission: Permission): Answer | Promise<Answer>;
  }
  | {
    /** The API server decides, by the reader's own credentials, which are all that is sent there. */
    readonly access: "API server";
    readonly path: string;
    /** Whether its answer is a stream that may last: a watch, or a log that is followed. */
    readonly isWatch: boolean;
    answer(user: UserInfo | undefined): Answer | Promise<Answer>;
  }
  | {
    /** For every client: it shows nothing of what is served. */
    readonly access: "open";
    answer(): Answer | Promise<Answer>;
  };

export type ReaderRoute = (c: Context, state: ReadApiState, reader: Reader) => Route;

/**
 * Finds the route of a request that is answered whatever readers there are; `undefined` if it is not for this
 * app.
 */
export type PlainRoute = (c: Context, state: ReadApiState) => Route | undefined;
