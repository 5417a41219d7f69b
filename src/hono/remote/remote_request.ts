/**
 * A request for a resource that a remote holds.
 * @module
 */

import type { ListOptions } from "../../meta/list_watch.ts";
import type { ResourcePath } from "../../protocol/resource_path.ts";
import type { Permission } from "../access/gate.ts";
import type { ReadApiState } from "../read_api_state.ts";
import type { Reader } from "../readers.ts";
import type { RequestedRead } from "../requested_read.ts";
import type { RemoteResource } from "./remote_resource.ts";

/** A request for a resource that a remote holds. */
export interface RemoteRequest extends ReadApiState {
  readonly target: RemoteResource;
  readonly path: ResourcePath;
  readonly reader: Reader;
  /** The reader's path below the mount, which is the remote's path. */
  readonly own: string;
  /** A query of an index. */
  readonly isIndex: boolean;
}

/** A permitted request, as it is sent on. */
export interface RemoteRead {
  readonly verb: RequestedRead["verb"];
  readonly options: ListOptions;
  readonly permission: Permission;
  /** Whether the events of a watch are sent as server-sent ones. */
  readonly isEventStream: boolean;
  readonly request: Request;
}
