import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  AGE_ANNOTATION,
  ageMsOf,
  INITIAL_EVENTS_END_ANNOTATION,
  isInitialEventsEnd,
} from "../../src/meta/list_watch.ts";

const bookmark = (annotations?: Record<string, string>) => ({
  metadata: { ...(annotations && { annotations }) },
});

describe("isInitialEventsEnd", () => {
  it("is what the annotation says, which has the text true", () => {
    const values = ["true", "false", "True", ""].map((value) =>
      bookmark({ [INITIAL_EVENTS_END_ANNOTATION]: value })
    );
    assert.deepEqual([...values, bookmark()].map(isInitialEventsEnd), [true, false, false, false, false]);
  });
});

describe("ageMsOf", () => {
  it("is 0 unless the annotation has a number above it", () => {
    const values = ["1500", "0.5", "0", "-5", "Infinity", "soon", ""];
    const ages = values.map((value) => ageMsOf(bookmark({ [AGE_ANNOTATION]: value })));
    assert.deepEqual([...ages, ageMsOf(bookmark())], [1_500, 0.5, 0, 0, 0, 0, 0, 0]);
  });
});
