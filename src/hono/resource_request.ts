/**
 * A request for a resource that is served.
 * @module
 */

import type { ResourcePath } from "../protocol/resource_path.ts";
import type { ReadApiState } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";
import type { ServedResource } from "./served_resources.ts";
import type { IndexValue } from "./content/states.ts";

/** A request for a served resource. */
export interface ResourceRequest extends ReadApiState {
  readonly target: ServedResource;
  readonly path: ResourcePath;
  readonly reader: Reader;
  /** List only what is under this value of an index, which the store has. */
  readonly under?: IndexValue;
}
