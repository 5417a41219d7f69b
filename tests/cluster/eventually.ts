/**
 * Waiting for what a real server does in its own time.
 * @module
 */

const POLL_MS = 50;

/** Waits for real time to pass. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Calls `check` until it no longer throws, and returns what it returns.
 *
 * @throws What `check` threw last, when the time is over.
 */
export async function eventually<R>(
  check: () => R | Promise<R>,
  { timeoutMs = 30_000 }: { readonly timeoutMs?: number } = {},
): Promise<R> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
    await pause(POLL_MS);
  }
}
