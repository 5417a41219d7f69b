import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseJunit } from "../../scripts/lib/junit.ts";

describe("parseJunit", () => {
  it("counts leaves in Deno's report, where a describe is a test of its own", () => {
    const xml = `<testsuites name="deno test"><testsuite name="./a_test.ts">
      <testcase name="outer &amp; more" classname="./a_test.ts"><failure message="1 test step failed">1.</failure></testcase>
      <testcase name="flat" classname="./a_test.ts">
      </testcase></testsuite>
      <testsuite name="ext:deno_node/testing.ts">
      <testcase name="outer &amp; more &gt; passes" classname="ext:x"></testcase>
      <testcase name="outer &amp; more &gt; fails" classname="ext:x"><failure message="m">Error: 1 &lt; 2
at x</failure></testcase>
      <testcase name="outer &amp; more &gt; later" classname="ext:x"><skipped/></testcase>
      </testsuite></testsuites>`;
    assert.deepEqual(parseJunit(xml, "deno"), [
      { file: "./a_test.ts", name: "flat", status: "passed" },
      { file: "./a_test.ts", name: "outer & more > passes", status: "passed" },
      {
        file: "./a_test.ts",
        name: "outer & more > fails",
        status: "failed",
        message: "Error: 1 < 2\nat x",
      },
      { file: "./a_test.ts", name: "outer & more > later", status: "skipped" },
    ]);
  });

  it("keeps a describe that failed although its tests passed (a hook that throws)", () => {
    const xml =
      `<testcase name="outer" classname="./a_test.ts"><failure message="hook">hook</failure></testcase>
      <testcase name="outer &gt; passes" classname="ext:x"></testcase>`;
    assert.deepEqual(
      parseJunit(xml, "deno").map(({ name, status }) => `${name} ${status}`),
      [
        "outer failed",
        "outer > passes passed",
      ],
    );
  });

  it("joins the names of nested suites in Node's report", () => {
    const xml = `<testsuites><testsuite name="outer > &lt;more>" tests="2">
      <testcase name="passes" time="0.1" classname="outer" file="/x/a.mjs"/>
      <testcase name="fails" file="/x/a.mjs" failure="1 > 2"><failure type="t" message="1 > 2">
[Error: 1 &lt; 2]
      </failure></testcase>
      <testsuite name="inner"><testcase name="later" file="/x/a.mjs"><skipped type="todo" message="true"/></testcase>
      </testsuite></testsuite><testcase name="flat" file="/x/b.mjs"/></testsuites>`;
    assert.deepEqual(parseJunit(xml, "node"), [
      { file: "/x/a.mjs", name: "outer > <more> > passes", status: "passed" },
      {
        file: "/x/a.mjs",
        name: "outer > <more> > fails",
        status: "failed",
        message: "[Error: 1 < 2]",
      },
      {
        file: "/x/a.mjs",
        name: "outer > <more> > inner > later",
        status: "skipped",
      },
      { file: "/x/b.mjs", name: "flat", status: "passed" },
    ]);
  });

  it("leaves the suite of a file out of Bun's names", () => {
    const xml = `<testsuites name="bun test"><testsuite name="o/a.mjs" file="o/a.mjs">
      <testsuite name="outer" file="o/a.mjs"><testcase name="passes" file="o/a.mjs" /></testsuite>
      <testcase name="fails" file="o/a.mjs"><failure type="AssertionError" message="1&#10;2" /></testcase>
      </testsuite></testsuites>`;
    assert.deepEqual(parseJunit(xml, "bun"), [
      { file: "o/a.mjs", name: "outer > passes", status: "passed" },
      { file: "o/a.mjs", name: "fails", status: "failed", message: "1\n2" },
    ]);
  });
});
