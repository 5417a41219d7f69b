import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { countTests } from "../../scripts/lib/junit.ts";

describe("countTests", () => {
  it("counts the tests in groups and not the groups", () => {
    const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="9" failures="4" errors="0" time="0.218">
    <testsuite name="./a_test.ts" tests="6" disabled="1" errors="0" failures="3">
        <testcase name="one" classname="./a_test.ts" time="0.001" line="4" col="1">
        </testcase>
        <testcase name="left out" classname="./a_test.ts" time="0.000" line="5" col="1">
            <skipped/>
        </testcase>
        <testcase name="a group" classname="./a_test.ts" time="0.003" line="8" col="1">
            <failure message="1 test step failed">1 test step failed.</failure>
        </testcase>
        <testcase name="broken" classname="./a_test.ts" time="0.001" line="15" col="1">
            <failure message="Uncaught Error: x">Error: x
&lt;skipped/&gt;</failure>
        </testcase>
    </testsuite>
    <testsuite name="ext:deno_node/testing.ts" tests="3" disabled="1" errors="0" failures="1">
        <testcase name="a group > inner" classname="ext:deno_node/testing.ts" time="0.000" line="1" col="23191">
        </testcase>
        <testcase name="a group &gt; a second" classname="ext:deno_node/testing.ts" time="0.001" line="1" col="2">
            <failure message="Uncaught Error: x">Error: x</failure>
        </testcase>
        <testcase name="a group > a third" classname="ext:deno_node/testing.ts" time="0.000" line="1" col="2">
            <skipped/>
        </testcase>
    </testsuite>
</testsuites>`;
    assert.deepEqual(countTests(report), { passed: 2, failed: 2, skipped: 2 });
  });

  it("counts nothing where nothing was reported", () => {
    assert.deepEqual(countTests(""), { passed: 0, failed: 0, skipped: 0 });
  });
});
