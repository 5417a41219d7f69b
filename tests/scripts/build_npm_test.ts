import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { specifiersOf, withoutDocsOfOthers } from "../../scripts/build_npm.ts";
import { BIN_SOURCE, NPM_PACKAGE } from "../../scripts/npm_package.ts";

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

describe("specifiersOf", () => {
  it("has those of each form of import and export, also of minified ones", () => {
    const source = `import "./1.js";
import type { A } from "./2.js";
import*as b from"./3.js";import c,{d as e}from"./4.js";export*from"./5.js";export{f as default}from'./6.js';
export type {
  G,
} from "./7.js";
const h = await import("./8.js");`;
    assert.deepEqual(specifiersOf(source), [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `./${n}.js`));
  });

  it("takes no text that ends with from for one", () => {
    assert.deepEqual(specifiersOf('return e===void 0?"set what it comes from":typeof e!="string"?1:2'), []);
  });
});

describe("BIN_SOURCE: the command listwatch", () => {
  const versions: Record<string, boolean> = {
    "20.20.2": false,
    "22.12.0": false,
    "22.13.0": true,
    "24.0.0": true,
  };
  for (const [version, isNewEnough] of Object.entries(versions)) {
    it(`${isNewEnough ? "runs" : "says what it needs, and reads nothing else,"} on Node ${version}`, async () => {
      const folder = await Deno.makeTempDir({ prefix: "listwatch-bin-" });
      try {
        for (const name of ["bin", "lib"]) await Deno.mkdir(`${folder}/${name}`);
        await Deno.writeTextFile(`${folder}/bin/listwatch.js`, BIN_SOURCE);
        await Deno.writeTextFile(`${folder}/lib/cli.js`, 'console.log("runs"); export const main = () => 3;');
        const start = `Object.defineProperty(process.versions, "node", { value: "${version}" });
          await import("./bin/listwatch.js");`;
        await Deno.writeTextFile(`${folder}/start.js`, start);
        const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
          args: ["run", "-A", "--no-config", `${folder}/start.js`],
          env: { NO_COLOR: "1" },
        }).output();
        const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
        const error = `listwatch: Node ${version} is too old: it needs Node 22.13 or later`;
        assert.deepEqual([code, out, err], isNewEnough ? [3, "runs", ""] : [1, "", error]);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    });
  }

  it("has its own environment and flags where it is started as a file", {
    skip: Deno.build.os === "windows" ? "Windows has no #! lines" : false,
  }, async () => {
    const folder = await Deno.makeTempDir({ prefix: "listwatch-bin-" });
    try {
      const node = '#!/bin/sh\necho $MALLOC_MMAP_THRESHOLD_ "$@"\n';
      await Deno.writeTextFile(`${folder}/node`, node, { mode: 0o755 });
      await Deno.writeTextFile(`${folder}/listwatch.js`, BIN_SOURCE, { mode: 0o755 });
      const { stdout } = await new Deno.Command(`${folder}/listwatch.js`, {
        args: ["serve"],
        env: { PATH: `${folder}:${Deno.env.get("PATH")}` },
      }).output();
      const out = new TextDecoder().decode(stdout).trim();
      assert.equal(out, `65536 --max-semi-space-size=16 ${folder}/listwatch.js serve`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });

  it("needs the Node that the package names", () => {
    assert.equal(NPM_PACKAGE.engines.node, ">=22.13");
  });
});
