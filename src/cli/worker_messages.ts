/**
 * What a program and its workers send to each other.
 * @module
 */

import type { ApiResource } from "../protocol/api_resource.ts";
import type { AccessLogEntry } from "./access_log.ts";
import type { UpstreamStatus } from "./relayed_informer.ts";
import type { Selection } from "./select_resources.ts";
import type { ServeOptions } from "./serve_options.ts";

/** The command that runs a worker; {@linkcode startWorkers} passes it. */
export const WORKER_COMMAND = "serve-worker";

/** The options that a worker has, too: what can be sent. */
export type WorkerOptions = Omit<
  ServeOptions,
  "workers" | "resources" | "drop" | "accessLog" | "signal" | "onStep" | "logger" | "clock" | "maxLagMs"
>;

/** The first message to a worker. */
export interface StartMessage {
  readonly type: "start";
  /** Its number, from 1. */
  readonly worker: number;
  /** The cache of the parent, and the token for it. */
  readonly source: { readonly url: string; readonly token: string };
  readonly options: WorkerOptions & { readonly host: string; readonly port: number };
  /** `null` for `Infinity`, which JSON does not have. */
  readonly maxLagMs: number | null | undefined;
  readonly accessLog: boolean;
  readonly resources: readonly ApiResource[];
  /** The order of discovery, as indices of `resources`. */
  readonly inDiscoveryOrder: readonly number[];
  readonly cluster: { readonly name: string; readonly server: string };
  readonly version: Selection["version"];
  /** How long it waits for its first lists before it listens. */
  readonly syncLimitMs: number;
}

/** To a worker. Arrays are in the order of {@linkcode StartMessage.resources}. */
export type ToWorker =
  | StartMessage
  /** Once a second. Answered by `alive`: a worker that does not answer for long is ended. */
  | {
    readonly type: "state";
    readonly resources: readonly (UpstreamStatus & { readonly synced: boolean })[];
    /** The open watches of all workers together. */
    readonly watches: readonly number[];
  }
  /** Descriptions have changed. */
  | { readonly type: "describe"; readonly resources: readonly ApiResource[] }
  /** Answered by `metrics` with the same id. */
  | { readonly type: "measure"; readonly id: number };

/** From a worker. */
export type FromWorker =
  | { readonly type: "listening"; readonly url: string; readonly access: string }
  /** The answer to each `state`. */
  | { readonly type: "alive" }
  /** Every resource has its first list. */
  | { readonly type: "synced" }
  /** It cannot start, or continue. */
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "watches"; readonly watches: readonly number[] }
  | { readonly type: "metrics"; readonly id: number; readonly text: string }
  | { readonly type: "access"; readonly entry: AccessLogEntry }
  | { readonly type: "log"; readonly level: "info" | "warn" | "error"; readonly message: string };
