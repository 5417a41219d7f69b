/** The options of a reflector that only an informer sets. */

import type { HoldText } from "../text/object_text_reader.ts";
import type { Quarantine } from "./quarantine.ts";

/** The content of a snapshot. */
export interface RestoredContent {
  /** As the store holds them. */
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  /** The time of the last contact that it reflects, by the wall clock. */
  readonly savedAtMs: number;
  /** Whether a watch from its version would miss changes. */
  readonly needsList: boolean;
  /** What identifies its cluster, as `ListerWatcher.clusterUid`; `undefined` if that is not known. */
  readonly clusterUid: string | undefined;
}

/** What a server says of a snapshot. */
export interface Probe {
  /** Its version now; `undefined` if the source has no `metadata` to read it with. */
  readonly serverVersion: string | undefined;
  /** It is another cluster than that of the snapshot. */
  readonly isOtherCluster: boolean;
}

/** A snapshot, to a reflector. */
export interface ReflectedSnapshot {
  /** Called before the first request; `undefined` if there is none. Does not reject. */
  load(signal: AbortSignal): Promise<RestoredContent | undefined>;
  /**
   * Asks the server whether a watch from the snapshot's version is possible.
   *
   * @throws What the request fails with.
   */
  probe(signal: AbortSignal): Promise<Probe>;
}

/** What a reflector shares with the rest of a pipeline; no option of the user. */
export interface ReflectorWiring {
  /** The sink of the whole pipeline; the reflector makes its own by default. */
  readonly quarantine?: Quarantine;
  /** What the store holds: a quarantined object of a list leaves the state before it, instead of a delete. */
  readonly knownObjects?: { getByKey(key: string): unknown };
  /**
   * Whether an event whose resourceVersion is older than one before it is taken for one that was sent again:
   * it is written, but the next watch begins where this one had come to. For a store that skips such events.
   * `false` by default: every event is followed, as client-go does.
   */
  readonly neverGoesBack?: boolean;
  /**
   * Receives each object of a list, page by page or streamed, as soon as it arrives; what it returns takes
   * its place. For a store that holds objects in a form of its own. Must return what `knownObjects` holds,
   * and must not throw.
   */
  readonly intake?: (object: unknown) => unknown;
  /** The content that takes the place of the first list, if there is one. */
  readonly snapshot?: ReflectedSnapshot;
  /**
   * Handed to the source with each list and watch: how the store holds objects of which the source has the
   * text.
   */
  readonly holdText?: HoldText;
  /**
   * Decides when a list is complete, before it is stored, whether what `intake` made of its objects is valid;
   * if not, everything is listed once more. `hasAdvanced`: the list's resourceVersion is newer than the one
   * reached before, so that it can be of the same history. Always valid by default.
   */
  readonly acceptIntake?: (list: { readonly hasAdvanced: boolean }) => boolean;
}
