/**
 * Waits for resourceVersions that may be merged ones.
 * @module
 */

import { hasReached } from "./merged_version.ts";
import { VersionWaiters } from "./version_waiters.ts";

/**
 * Waits until each part of a merged resourceVersion is reached; for versions of one server as {@linkcode
 * VersionWaiters}.
 */
export class PartwiseVersionWaiters extends VersionWaiters {
  protected override covers(version: string, wanted: string): boolean {
    return version !== "" && hasReached(version, wanted);
  }
}
