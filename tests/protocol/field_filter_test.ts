import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseFieldFilter } from "../../src/protocol/field_filter.ts";
import { ScreenSyntaxError } from "../../src/protocol/screen_syntax.ts";

const POD = {
  metadata: {
    name: "Web-1",
    labels: { "example.com/team": "shop" },
    creationTimestamp: "2026-01-31T12:00:00Z",
  },
  spec: {
    nodeName: "n1",
    hostNetwork: false,
    containers: [
      { image: "nginx:1.29", resources: { requests: { cpu: "100m" } } },
      { image: "a,b", resources: { requests: { cpu: "2" } } },
    ],
  },
  status: {
    restarts: 7,
    reason: null,
    message: "",
    conditions: [{ type: "Initialized", status: "True" }, { type: "Ready", status: "False" }, null],
  },
};

function matches(filter: string): boolean {
  const parsed = parseFieldFilter(filter);
  // The canonical text means the same, and is written so again.
  const again = parseFieldFilter(`${parsed}`);
  assert.equal(`${again}`, `${parsed}`);
  assert.equal(again.matches(POD), parsed.matches(POD), filter);
  return parsed.matches(POD);
}

describe("FieldFilter.matches", () => {
  const cases: Record<string, boolean> = {
    "": true,
    "spec.nodeName=n1": true,
    "spec.nodeName==n1": true,
    "spec.nodeName = n2": false,
    "spec.nodeName!=n2": true,
    "spec.nodeName!=n1": false,
    "spec.absent!=n1": true,
    "spec.absent=": false,
    "status.message=": true,
    "spec.hostNetwork=false": true,
    "status.restarts=7": true,
    "spec.nodeName in (n1,n2)": true,
    "spec.nodeName notin (n1, n2)": false,
    "spec.absent notin (n1)": true,
    "spec.nodeName": true,
    "spec.containers": true,
    "spec.absent": false,
    "status.reason": false,
    "!status.reason": true,
    "status.reason.code=1": false,
    "spec.nodeName.length=2": false,
    "spec.containers.length=2": false,
    'spec.containers["0"]': false,
    "!spec.nodeName": false,
    "metadata.name~WEB": true,
    "metadata.name~web-2": false,
    'metadata.labels["example.com/team"]=shop': true,
    "spec.containers[].image~NGINX": true,
    'spec.containers[].image="a,b"': true,
    "status.conditions[type=Ready].status=False": true,
    "status.conditions[type=Ready].status=True": false,
    "status.conditions[type=Ready].status!=True": true,
    "status.conditions[type=Initialized].status!=True": false,
    "status.conditions[type=Other].status!=True": true,
    "status.conditions[type=Other]": false,
    'status.conditions[type="Ready"]': true,
    "status[type=Ready]": false,
    'spec.containers[image="a,b"].resources.requests.cpu>1': true,
    'spec.containers[image="nginx:1.29"].resources.requests.cpu>1': false,
    'spec.containers[].image in ("a,b")': true,
    "spec.containers[].image!=nginx:1.29": false,
    "spec.containers[].image=nginx:1.29,spec.nodeName=n2": false,
    "spec.containers[].resources.requests.cpu>1": true,
    "spec.containers[].resources.requests.cpu<150m": true,
    "spec.containers[].resources.requests.cpu>2": false,
    "status.restarts>6": true,
    "status.restarts<7": false,
    "metadata.creationTimestamp>2026-01-31T11:59:59Z": true,
    "metadata.creationTimestamp<2026-01-31T13:00:00+02:00": false,
    "metadata.creationTimestamp>5": false,
    "metadata.name>5": false,
    "spec.containers=x": false,
    "metadata.name.length=5": false,
    "metadata.constructor": false,
  };
  for (const [filter, expected] of Object.entries(cases)) {
    it(`is ${expected} for ${filter || "the empty filter"}`, () => assert.equal(matches(filter), expected));
  }
});

describe("FieldFilter.isEmpty", () => {
  it("is true of a filter without conditions", () => {
    assert.deepEqual(["", "spec.nodeName", "!spec.nodeName"].map((text) => parseFieldFilter(text).isEmpty), [
      true,
      false,
      false,
    ]);
  });
});

describe("FieldFilter.toString", () => {
  it("is the same for all ways to write a filter", () => {
    const one = parseFieldFilter('b in (y,x,y), a["c"]==1');
    assert.equal(`${one}`, 'a.c="1",b in ("x","y")');
    assert.equal(`${parseFieldFilter(`${one}`)}`, `${one}`);
  });
});

describe("parseFieldFilter", () => {
  it("says where a filter is wrong, and what to write", () => {
    const wrong: Record<string, RegExp> = {
      "a b": /no operator behind a at character 3 \("b"\); write =, !=/,
      "a=b c=d,": /a path of a field is missing at its end/,
      "a in b": /"\(" is missing at character 6 .*parentheses/,
      "a in (b": /"\)" is missing at its end/,
      'a="b': /no JSON string at character 3/,
      "a>b": /nothing behind > that has an order at character 3 \("b"\); write a number/,
      "a>=5": /nothing behind >/,
      "a<b": /nothing behind < that has an order at character 3/,
      "a=b(c": /"," is missing at character 4/,
      "=b": /a path of a field is missing at character 1/,
    };
    for (const [filter, message] of Object.entries(wrong)) {
      assert.throws(() => parseFieldFilter(filter), (error) => {
        assert.ok(error instanceof ScreenSyntaxError);
        assert.match(error.message, message);
        return true;
      }, filter);
    }
  });

  it("keeps to limits", () => {
    const limits = { maxRequirements: 2, maxValues: 3, maxTextLength: 40 };
    parseFieldFilter("a in (1,2),b=3", limits);
    assert.throws(() => parseFieldFilter("a,b,c", limits), /3 requirements, and at most 2/);
    assert.throws(() => parseFieldFilter("a in (1,2,3,4)", limits), /4 values, and at most 3/);
    assert.throws(() => parseFieldFilter(`a=${"b".repeat(39)}`, limits), /41 characters, and at most 40/);
  });
});
