import assert from "node:assert/strict";
import { it } from "node:test";
import { consoleLogger } from "@listwatch/cache";

it("consoleLogger escapes control characters in names, and cuts long messages", () => {
  const written: unknown[][] = [];
  const { warn, error } = console;
  try {
    console.warn = console.error = (...values: unknown[]) => void written.push(values);
    consoleLogger.warn("pods: cannot list a\u202eb\x1b[2J", { resource: "pods" });
    consoleLogger.error("x".repeat(100_000));
  } finally {
    Object.assign(console, { warn, error });
  }
  assert.deepEqual(written[0], ["pods: cannot list a\\u202eb\\x1b[2J", { resource: "pods" }]);
  assert.equal(String(written[1][0]).length, 8192);
});
