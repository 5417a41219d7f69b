import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  COMMENT_WIDTH,
  declaredNames,
  longCommentLines,
  subjectlessComments,
  unnamedTitles,
} from "../../scripts/check_language.ts";
import { avoidedUses } from "../../scripts/lib/plain_words.ts";

const phrases = (text: string) => avoidedUses(text).map(({ phrase, line }) => `${line}: ${phrase}`);

describe("avoidedUses", () => {
  it("finds a phrase with its line, in comments, strings and Markdown", () => {
    assert.deepEqual(phrases("one\n// the handler is told of it\n"), ["2: told"]);
    assert.deepEqual(phrases('throw new Error("nobody listens");'), ["1: nobody"]);
    assert.deepEqual(phrases("Then it goes on."), ["1: goes on"]);
  });

  it("finds a phrase that a line break divides", () => {
    assert.deepEqual(phrases("/**\n * The bad event is set\n * aside.\n */"), ["2: set aside"]);
    assert.deepEqual(phrases("// the others go\n  // on as before"), ["1: go on"]);
    assert.deepEqual(phrases("> without a\n> word"), ["1: without a word"]);
  });

  it("leaves names in code, HTTP's Gone and the usual meanings of a word alone", () => {
    const allowed = [
      'const reason = "Gone";',
      "chance.tell(pod);",
      "{ gone: string[] }",
      "`null` stands for no value",
      "a stand-in for the server",
      "let into",
      "It is understood.",
    ];
    for (const text of allowed) assert.deepEqual(phrases(text), [], text);
  });
});

describe("unnamedTitles", () => {
  const names = declaredNames(
    new Map([
      ["src/queue/delta_fifo.ts", "export class DeltaFIFO {}\nexport async function list(): void {}"],
      ["src/cli/serve/serve.ts", "export function serve() {\n  const a = 1;\n}"],
      ["SECURITY.md", "text"],
    ]),
  );
  const unnamed = (source: string) => unnamedTitles(source, names).map(({ title }) => title);

  it("accepts a symbol, a member, a path, an option, a command and a file", () => {
    const titles = [
      "DeltaFIFO",
      "DeltaFIFO.pop returns the oldest object",
      "`serve` prints its address",
      "serve()",
      "list",
      "/readyz",
      "examples/",
      "--token",
      "deno task ok",
      "SECURITY.md",
      "listwatch serve --help",
    ];
    for (const title of titles) assert.deepEqual(unnamed(`describe("${title}", () => {`), [], title);
  });

  it("finds titles that begin with another word, also one that is a name somewhere inside a function", () => {
    const titles = ["a queue", "the list of pods", "list of pods", "DeltaQueue"];
    for (const title of titles) assert.deepEqual(unnamed(`\nit("${title}", () => {`), [title]);
  });

  it("looks at outermost titles only", () => {
    assert.deepEqual(
      unnamed('describe("DeltaFIFO", () => {\n  it("returns the oldest", () => {});\n});'),
      [],
    );
  });
});

describe("longCommentLines", () => {
  const long = "word ".repeat(COMMENT_WIDTH / 5);

  it("finds each line of a comment that should be broken", () => {
    const text = `/**\n * ${long}\n * short\n */\n// ${long}\n/** ${long} */\n`;
    assert.deepEqual(longCommentLines(text), [2, 5, 6]);
  });

  it("leaves code, tables, links and lines of the full width alone", () => {
    const link = `https://example.com/${"a".repeat(COMMENT_WIDTH)}`;
    const example = ["/**", " * ```ts", ` * call(${long});`, " * ```", " */"].join("\n");
    const full = `// ${"a ".repeat(COMMENT_WIDTH)}`.slice(0, COMMENT_WIDTH);
    for (
      const text of [example, `// ${link}`, ` * | ${long} |`, ` * [text](${link}):`, full, `f("${long}");`]
    ) {
      assert.deepEqual(longCommentLines(text), [], text);
    }
  });
});

describe("subjectlessComments", () => {
  it("finds a comment that begins with a word for what it does not name", () => {
    const text =
      "/** Of its field. */\n/**\n * Those that wait.\n * Their rows.\n */\n// They wait.\n// Its rows.\n";
    assert.deepEqual(subjectlessComments(text), [1, 3, 6]);
  });

  it("leaves comments with a subject alone", () => {
    const text =
      "/** The value of the field. */\n// Ofttimes read.\n// The first line of two.\n// They are two.\n";
    assert.deepEqual(subjectlessComments(text), []);
  });
});
