import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { linkedReadme, relativeLinks } from "../../scripts/lib/npm_readme.ts";
import { NPM_PACKAGE } from "../../scripts/npm_package.ts";

const README = [
  "[Serving](docs/serving.md#freshness), [an example](examples/pods_by_node.ts), [a place](#install),",
  "[`a b`](https://example.com/x), [of [two]](./SECURITY.md) ![the page](docs/page.svg)",
].join("\n");

describe("linkedReadme", () => {
  const packed = NPM_PACKAGE.files;

  it("leads to the repository where a file is not packed", () => {
    assert.equal(
      linkedReadme(README, packed, "https://example.com/o/r"),
      [
        "[Serving](https://example.com/o/r/blob/main/docs/serving.md#freshness), " +
        "[an example](examples/pods_by_node.ts), [a place](#install),",
        "[`a b`](https://example.com/x), [of [two]](https://example.com/o/r/blob/main/SECURITY.md) " +
        "![the page](https://example.com/o/r/raw/main/docs/page.svg)",
      ].join("\n"),
    );
  });

  it("has plain text in the place of such links while the repository has no page", () => {
    const text = linkedReadme(README, packed);
    assert.match(text, /^Serving, \[an example\]\(examples\/pods_by_node\.ts\), \[a place\]\(#install\),\n/);
    assert.deepEqual(relativeLinks(text), ["examples/pods_by_node.ts"]);
  });
});

describe("linkedReadme of a README in a folder", () => {
  it("leads from that folder", () => {
    const text = "[the page](src/page.js), [ways](../../docs/workers.md#ways)";
    assert.equal(
      linkedReadme(text, NPM_PACKAGE.files, undefined, "examples/edge"),
      "[the page](src/page.js), ways",
    );
    assert.equal(
      linkedReadme(text, NPM_PACKAGE.files, "https://example.com/o/r", "examples/edge"),
      "[the page](src/page.js), [ways](https://example.com/o/r/blob/main/docs/workers.md#ways)",
    );
  });
});

describe("relativeLinks", () => {
  it("returns the targets that are no whole URLs", () => {
    assert.deepEqual(relativeLinks(README), [
      "docs/serving.md#freshness",
      "examples/pods_by_node.ts",
      "./SECURITY.md",
      "docs/page.svg",
    ]);
  });
});
