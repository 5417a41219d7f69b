import assert from "node:assert/strict";

/** Looks again and again whether something is so that comes from outside of the test's own turns. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 2_000 && !isSo(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(isSo(), `${isSo}`);
}
