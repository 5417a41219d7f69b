/**
 * The command line program as a library: `serve` a cluster's state from your own program, or run `main`.
 *
 * For Deno, Node and Bun.
 *
 * @module
 */

export type { AccessLogEntry } from "./readers/access_log.ts";
export { main, type MainOptions } from "./command.ts";
export { type Command, parseCommandLine } from "./command_line.ts";
export { CommandError, UsageError } from "./errors.ts";
export { serve, type Served } from "./serve/serve.ts";
export type {
  ClusterSource,
  ServeOptions,
  ServeStep,
  StorageName,
  SyncProgress,
} from "./serve/serve_options.ts";
