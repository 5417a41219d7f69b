import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withoutDocsOfOthers } from "../../scripts/build_npm.ts";

/** A file, as `deno pack` writes it. */
const SOURCE = `/**
 * A room.
 *
 * @example
 * \`\`\`ts
 * one();
 * \`\`\`
 */ import type { Two } from "./two.d.ts";
${["one", "two", "three"].map(documented).join("")}`;

function documented(name: string): string {
  return `/**
 * Returns ${name}.
 *
 * @example
 * \`\`\`ts
 * console.log(${name}());
 * \`\`\`
 */ export declare function ${name}(): void;
`;
}

describe("withoutDocsOfOthers", () => {
  const names = { documented: new Set(["one", "two"]), shown: new Set(["one"]) };
  const text = withoutDocsOfOthers(SOURCE, names);

  it("keeps the examples of the main entry, and no others", () => {
    assert.deepEqual(text.match(/console\.log\(.*\);/g), ["console.log(one());"]);
    assert.doesNotMatch(text, /^ \* one\(\);/m);
  });

  it("keeps what is written of names that entries export", () => {
    assert.deepEqual(text.match(/Returns \w+/g), ["Returns one", "Returns two"]);
    assert.match(text, /A room\./);
  });

  it("keeps the code", () => {
    const code = (source: string) => source.replaceAll(/\/\*\*[\s\S]*?\*\/ ?/g, "");
    assert.equal(code(text), code(SOURCE));
  });
});
