/**
 * Defines the global function `__corridor`, which a copy of the source calls where a
 * function begins or continues after an `await` (`corridor_trace.ts`). Import it before the
 * library: some functions run while they are imported.
 *
 * @module
 */

/** What ran while it was on. */
interface Recorder {
  isRecording: boolean;
  /** The files that ran, each with the file of the nearest caller outside of `util/`, or null. */
  readonly trace: [path: string, caller: string | null][];
}

/** The recorder of this process. */
export const recorder: Recorder = { isRecording: false, trace: [] };

Object.assign(globalThis, {
  __corridor<T>(path: string, value?: T): T | undefined {
    if (recorder.isRecording) recorder.trace.push([path, callerOf()]);
    return value;
  },
});

// No time passes while it is on: a loop that gives way after some milliseconds would do so on a busy machine.
const now = performance.now.bind(performance);
let stoppedMs: number | undefined;
performance.now = () => recorder.isRecording ? stoppedMs ??= now() : now();

interface CallSite {
  getFileName(): string | null;
  isAsync(): boolean;
}

const FOLDER = `${import.meta.dirname}/`;

/** The file that called the function that calls `__corridor`. */
function callerOf(): string | null {
  const { prepareStackTrace, stackTraceLimit } = Error as unknown as Record<string, unknown>;
  const set = (values: Record<string, unknown>) => Object.assign(Error, values);
  set({ stackTraceLimit: 50, prepareStackTrace: (_: Error, sites: CallSite[]) => sites });
  const sites = new Error().stack as unknown as CallSite[];
  set({ prepareStackTrace, stackTraceLimit });
  // This function, `__corridor`, and what called it.
  for (const site of sites.slice(3)) {
    if (site.isAsync()) return null;
    const name = site.getFileName()?.replace(/^file:\/\//, "");
    const path = name?.startsWith(`${FOLDER}src/`) ? name.slice(FOLDER.length) : undefined;
    if (path !== undefined && !path.startsWith("src/util/")) return path;
  }
  return null;
}
