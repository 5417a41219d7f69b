/** The request of one page of a list, with a timeout. */

import type { ListOptions, ListPage } from "../meta/list_watch.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import { NetworkError } from "../meta/request.ts";
import { linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import type { ReflectorWiring } from "./reflector_wiring.ts";
import { inTime, Watchdog } from "./watchdog.ts";

/** How many times longer than its longest silence a page may take as a whole. */
const LONGEST_LIST = 10;

/** What {@linkcode requestList} needs. */
export interface ListRequestOptions {
  /** Of the reflector, for errors. */
  readonly name: string;
  readonly clock: Clock;
  /** How long nothing may arrive, in milliseconds. */
  readonly listTimeoutMs: number;
  readonly intake?: ReflectorWiring["intake"];
  readonly holdText?: ReflectorWiring["holdText"];
  /** Receives the number of bytes of each chunk. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/**
 * Requests one page of a list. It may take long as long as it makes progress: bytes or items that arrive.
 *
 * @throws {NetworkError} The page made no progress, or did not come to its end.
 * @throws Whatever the source throws.
 */
export async function requestList<T>(
  source: ListerWatcher<T>,
  request: ListOptions & { readonly signal: AbortSignal },
  { name, clock, listTimeoutMs, intake, holdText, onBytes }: ListRequestOptions,
): Promise<ListPage<T>> {
  const { signal, ...listOptions } = request;
  const link = linkedAbort(signal);
  let bytes = 0;
  const giveUp = (why: string) =>
    link.abort(new NetworkError("Unreachable", `Cannot list ${name}: ${why} ms`));
  const silence = new Watchdog(clock, listTimeoutMs, () => {
    const what = bytes > 0 ? `nothing more than ${bytes} bytes of a page came for` : "no whole page within";
    giveUp(`${what} ${listTimeoutMs}`);
  });
  const context: ListWatchContext = {
    signal: link.signal,
    onBytes: (more) => {
      bytes += more;
      if (more > 0) silence.feed();
      onBytes?.(more);
    },
    ...(holdText && { holdText }),
    ...(intake && {
      intake: (item) => {
        if (bytes === 0) silence.feed(); // a source that does not count bytes
        return intake(item);
      },
    }),
  };
  const longestMs = listTimeoutMs * LONGEST_LIST;
  try {
    return await inTime(() => source.list(listOptions, context), {
      ms: longestMs,
      onTimeout: () => giveUp(`no whole page within ${longestMs}`),
      clock,
      signal: link.signal,
    });
  } finally {
    silence.stop();
    link.unlink();
  }
}
