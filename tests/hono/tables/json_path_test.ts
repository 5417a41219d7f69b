import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseJsonPath } from "../../../src/hono/tables/json_path.ts";

const VALUE = {
  text: "t",
  none: null,
  "a.b/c": "dotted",
  map: { "a.b/c": 1, plain: 2 },
  list: ["a", "b", "c", "d"],
  empty: [],
  items: [
    { type: "Ready", status: "True", weight: 1, ratio: 1.5, isNew: true, tags: ["x", "y"] },
    { type: "Other", status: "False", weight: 2 },
    { status: "Unknown" },
  ],
};

// As client-go's util/jsonpath finds them.
const FOUND: Record<string, unknown[]> = {
  ".items[?(@.type[0])].weight": [],
  '"\\x4A\\u004B"': ["JK"],
  ".text": ["t"],
  "text": [],
  "$.text": ["t"],
  "@.text": ["t"],
  " .text": ["t"],
  ".": [],
  ".none": [null],
  ".none.deeper": [],
  ".missing.deeper": [],
  ".list.length": [],
  ".a\\.b/c": ["dotted"],
  "['a\\.b/c']": ["dotted"],
  ".map['a\\.b/c']": [1],
  ".map['a.b/c']": [],
  ".map['plain']": [2],
  ".map.plain": [2],
  ".map.*": [1, 2],
  ".list[0]": ["a"],
  ".list[]": ["a"],
  ".list[-1]": ["d"],
  ".list[1:]": ["b", "c", "d"],
  ".list[:2]": ["a", "b"],
  ".list[1:3]": ["b", "c"],
  ".list[-3:-1]": ["b", "c"],
  ".list[0:4:2]": ["a", "c"],
  ".list[::3]": ["a", "d"],
  ".list[2:2]": [],
  ".list[0:0]": [],
  ".list[:0]": [],
  ".list[*]": ["a", "b", "c", "d"],
  ".list[0, 2]": ["a", "c"],
  ".list[3,0:2]": ["d", "a", "b"],
  ".none[0]": [],
  ".missing[0]": [],
  ".empty[*]": [],
  ".items[*].type": ["Ready", "Other"],
  '.items[?(@.type=="Ready")].status': ["True"],
  ".items[?(@.type=='Ready')].status": ["True"],
  ".items[?( @.type == 'Ready' )].status": ["True"],
  '.items[?(@.type!="Ready")].status': ["False"],
  '.items[?(@.type>"P")].status': ["True"],
  ".items[?(@.weight==2)].status": ["False"],
  ".items[?(@.weight>=1)].status": ["True", "False"],
  ".items[?(@.weight>1)].status": ["False"],
  ".items[?(@.weight<2)].status": ["True"],
  ".items[?(@.weight<=2)].status": ["True", "False"],
  ".items[?(@.ratio>1.25)].type": ["Ready"],
  ".items[?(@.isNew==true)].type": ["Ready"],
  ".items[?(@.isNew!=true)].type": [],
  ".items[?(@.type==@.missing)].type": [],
  ".items[?(@.weight==)].type": [],
  ".items[?(@.type)].type": ["Ready", "Other"],
  ".items[?(@.tags[1])].type": ["Ready"],
  ".items[?(@.status==@.status)].status": ["True", "False", "Unknown"],
  '.items[?(@.type=="a\\"b)]")].status': [],
  "..type": ["Ready", "Other"],
  "..weight": [1, 2],
  "..map..plain": [2],
  "..['map']..plain": [2],
  ".items..plain": [],
};

const FAILS = [
  ".text[0]",
  ".text[?(@.x)]",
  ".none[?(@.x)]",
  ".list[4]",
  ".list[-5]",
  ".list[3:1]",
  ".list[0:9]",
  ".list[0:2:0]",
  ".empty[0]",
  ".items[?(@.weight=='1')]",
  ".items[?(@.ratio==1)]",
  ".items[?(@.isNew>false)]",
  ".items[?(@.tags==1)]",
  ".items[?(@.tags[*]=='x')]",
  ".items[?(@.type==@.tags[*])]",
  ".items[?(@.tags==@.tags)]",
  ".items[?(@.weight=<1)]",
  ".list range",
];

const UNREADABLE = [
  ".list[",
  ".list[x]",
  ".list[1:2:3:4]",
  ".list['a]",
  ".items[?(@.type=='Ready']",
  ".items[?(@.type=='Ready')",
  "....type",
  ".. ..type",
  ".items[?(==1)]",
  ".list[0]#",
  ".list[0]{",
  ".text}",
  "'open",
  "'\\q'",
  '"a\\\'b"',
  "1.2.3",
  "-",
  "\n",
];

describe("parseJsonPath", () => {
  it("finds what client-go finds", () => {
    for (const [path, expected] of Object.entries(FOUND)) {
      assert.deepEqual(run(path), expected, path);
    }
  });

  it("has literals", () => {
    assert.deepEqual(["'it\\'s'", '"\\x41\\u0042\\n"', "42", "-1.5", "true"].map(run), [
      ["it's"],
      ["AB\n"],
      [42],
      [-1.5],
      [true],
    ]);
  });

  it("fails where a value does not fit, and finds nothing of another object's", () => {
    for (const path of FAILS) assert.throws(() => run(path), TypeError, path);
    assert.deepEqual(parseJsonPath(".toString")({}), []);
    assert.deepEqual(parseJsonPath(".__proto__")({}), []);
  });

  it("fails where its steps find values again and again: a small object would take hours", () => {
    const ofDepth = (length: number) => Array.from({ length }).reduce<unknown>((below) => ({ a: below }), 1);
    const deep = ofDepth(30);
    assert.equal(parseJsonPath("..a..a..a")(deep).length, 4_060);
    for (const path of ["..a".repeat(12), `.a${"['a','a']".repeat(25)}`, `..${"a..a..".repeat(9)}a`]) {
      assert.throws(() => parseJsonPath(path)(deep), /finds too many values/, path);
    }
    assert.throws(() => parseJsonPath("..a..")(ofDepth(200)), /finds too many values/);
  });

  it("refuses paths that cannot be read", () => {
    for (const path of UNREADABLE) assert.throws(() => parseJsonPath(path), TypeError, path);
  });
});

function run(path: string): unknown[] {
  // `text` without a dot is a word; words have no meaning.
  if (path === "text") {
    assert.throws(() => parseJsonPath(path)(VALUE), /"text" has no meaning/);
    return [];
  }
  return parseJsonPath(path)(VALUE);
}
