/**
 * What a test run came to, from the report of `deno test --junit-path`.
 *
 * @module
 */

/** Numbers of tests; a group that holds others is none. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Counts the tests of a report, each `it` of a `describe` as one. */
export function countTests(junit: string): TestCounts {
  const tests: { name: string; outcome: keyof TestCounts }[] = [];
  const groups = new Set<string>();
  for (
    const [, attribute, body] of junit.matchAll(/<testcase name="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs)
  ) {
    const name = attribute.replaceAll("&gt;", ">");
    const outcome = /^\s*<(failure|error)\b/.test(body ?? "")
      ? "failed"
      : /^\s*<skipped\b/.test(body ?? "")
      ? "skipped"
      : "passed";
    tests.push({ name, outcome });
    const parts = name.split(" > ");
    for (let i = 1; i < parts.length; i++) groups.add(parts.slice(0, i).join(" > "));
  }
  const counts: TestCounts = { passed: 0, failed: 0, skipped: 0 };
  for (const { name, outcome } of tests) if (!groups.has(name)) counts[outcome]++;
  return counts;
}
