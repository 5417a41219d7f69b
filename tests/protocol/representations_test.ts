import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiResource } from "../../src/protocol/api_resource.ts";
import {
  jsonText,
  matchesRoute,
  matchesTag,
  type MediaType,
  negotiate,
  negotiateShape,
  opaqueTags,
  partialMetadata,
  prefersGzip,
  wantsPretty,
} from "../../src/protocol/representations.ts";

const BOTH: readonly MediaType[] = ["application/json", "application/yaml"];

describe("negotiate", () => {
  // Without a media type: not acceptable.
  const cases: [accept: string, mediaType?: MediaType][] = [
    ["", "application/json"],
    ["application/yaml", "application/yaml"],
    ["application/*", "application/json"],
    ["*/*", "application/json"],
    ["*", "application/json"],
    ["*/json"],
    ["text/html"],
    ["application"],
    ["application/json/x"],
    ["application/json;q=0.5,application/yaml", "application/yaml"],
    ["application/yaml;q=x,application/json;q=0.1", "application/json"],
    ["application/yaml;q=0", "application/yaml"],
    ["*/*,application/yaml;q=0.1", "application/yaml"],
    ["application/*,application/yaml;q=0.1", "application/yaml"],
    ["application/yaml,application/json", "application/yaml"],
    [" application / yaml ", "application/yaml"],
    ["text/json"],
    ["text/*"],
    ["application/json;q=0.95,application/yaml; q=0.9", "application/json"],
    ["application/yaml;q=0.1=2,application/json;q=0.5", "application/yaml"],
    ["application/yaml;q=,application/json;q=0.5", "application/yaml"],
    ["application/json;q=1.5,application/yaml", "application/json"],
    ["application/json;stream=watch", "application/json"],
    ["application/json;stream=other"],
    ["application/yaml;stream=watch"],
    ["application/json;sv=v1", "application/json"],
    ["application/json;sv=v2"],
    [`${"text/a,".repeat(127)}application/json`, "application/json"],
    [`${"text/a,".repeat(128)}application/json`],
  ];
  for (const [accept, mediaType] of cases) {
    const shown = accept.length > 80 ? `${accept.split(",").length} clauses` : JSON.stringify(accept);
    it(`answers ${shown} with ${mediaType ?? "a refusal"}`, () => {
      assert.equal(negotiate(accept, { mediaTypes: BOTH, serverVersion: "v1" })?.mediaType, mediaType);
    });
  }

  it("reads a quality with white space behind it", () => {
    const accept = "application/yaml;q=0.5 ,application/json;q=0.1";
    assert.equal(negotiate(accept, { mediaTypes: BOTH })?.mediaType, "application/yaml");
  });

  it("prefers a type to any type, whichever is named first", () => {
    const accept = "*/*;pretty=1,application/*";
    assert.deepEqual(negotiate(accept, { mediaTypes: BOTH })?.pretty, false);
  });

  it("indents only where the parameter is 1", () => {
    assert.equal(negotiate(undefined, { mediaTypes: BOTH })?.pretty, false);
    const isPretty = (accept: string) => negotiate(accept, { mediaTypes: BOTH })?.pretty;
    assert.deepEqual(["1", "0", "true"].map((value) => isPretty(`application/json;pretty=${value}`)), [
      true,
      false,
      false,
    ]);
  });

  it("reads parameters beside white space, and keeps the order of equal clauses", () => {
    const isPretty = (accept: string) => negotiate(accept, { mediaTypes: BOTH })?.pretty;
    assert.equal(isPretty("application/yaml; pretty = 1 "), true);
    assert.equal(isPretty("application/*,*/*;pretty=1"), false);
    assert.equal(isPretty("*/*,*/*;pretty=1"), false);
    assert.equal(isPretty("application/*,application/*;pretty=1"), false);
  });

  it("converts where one of the three parameters says to what", () => {
    const asked: unknown[] = [];
    const converts = (kind: unknown) => (asked.push(kind), false);
    for (const parameter of ["as=Table", "g=x", "v=v1", "w=1"]) {
      negotiate(`application/json;${parameter}`, { mediaTypes: ["application/json"], converts });
    }
    assert.deepEqual(asked, [
      { kind: "Table", group: "", version: "" },
      { kind: "", group: "x", version: "" },
      { kind: "", group: "", version: "v1" },
      undefined,
    ]);
  });

  it("takes the first clause whose kind can be answered", () => {
    const converts = (kind?: { readonly kind: string }) => kind === undefined || kind.kind === "Table";
    const agreed = negotiate("application/json;as=Other;v=v1;g=x,application/json;as=Table;v=v1;g=x", {
      mediaTypes: BOTH,
      converts,
    });
    assert.deepEqual(agreed?.convertTo, { group: "x", version: "v1", kind: "Table" });
  });
});

describe("matchesRoute", () => {
  it("takes a type that is produced, any type, and no header at all", () => {
    const cases: [string | undefined, boolean][] = [
      [undefined, true],
      ["", true],
      ["*/*", true],
      ["text/html, */*;q=0.8", true],
      ["application/json;as=Table", true],
      ["application/*", false],
      ["text/html", false],
    ];
    for (const [accept, matches] of cases) assert.equal(matchesRoute(accept, BOTH), matches, accept);
  });
});

describe("negotiateShape", () => {
  const pods: ApiResource = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
  const widgets: ApiResource = { ...pods, group: "example.com", kind: "Widget" };
  const as = (kind: string, version = "v1") => `application/json;as=${kind};g=meta.k8s.io;v=${version}`;

  /** The kind of the answer, or the code and message of its refusal. */
  function shapeOf(resource: ApiResource, request: Parameters<typeof negotiateShape>[1]): string {
    const answer = negotiateShape(resource, request);
    if (!("shape" in answer)) return `${answer.code}: ${answer.message}`;
    const { shape } = answer;
    return shape.kind === "refused" ? `then ${shape.status.code}: ${shape.status.message}` : shape.kind;
  }

  it("is a Table, metadata, or the object, as the header asks", () => {
    assert.equal(shapeOf(pods, { accept: undefined, verb: "list" }), "object");
    for (const version of ["v1", "v1beta1"]) {
      assert.equal(shapeOf(pods, { accept: as("Table", version), verb: "watch" }), "Table");
    }
    assert.equal(
      shapeOf(pods, { accept: as("PartialObjectMetadata"), verb: "get" }),
      "PartialObjectMetadata",
    );
    assert.equal(
      shapeOf(pods, { accept: as("PartialObjectMetadataList"), verb: "list" }),
      "PartialObjectMetadata",
    );
    const either = `${as("Table")},application/json`;
    assert.equal(shapeOf(pods, { accept: either, verb: "list", tables: false }), "object");
  });

  it("says in which media type, and whether it is indented, whatever its shape is", () => {
    const of = (verb: "get" | "list" | "watch", parameters: string, type = "yaml") => {
      const accept = `application/${type};pretty=1${parameters}`;
      const answer = negotiateShape(pods, { accept, verb, mediaTypes: BOTH });
      assert.ok("shape" in answer);
      const { mediaType, pretty, shape } = answer;
      const apiVersion = "apiVersion" in shape ? shape.apiVersion : undefined;
      return [mediaType, pretty, shape.kind, apiVersion];
    };
    const yaml = "application/yaml";
    const meta = (kind: string) => `;as=${kind};g=meta.k8s.io;v=v1beta1`;
    assert.deepEqual(of("list", ""), [yaml, true, "object", undefined]);
    assert.deepEqual(of("list", meta("Table")), [yaml, true, "Table", "meta.k8s.io/v1beta1"]);
    const metadata = of("get", meta("PartialObjectMetadata"));
    assert.deepEqual(metadata, [yaml, true, "PartialObjectMetadata", "meta.k8s.io/v1beta1"]);
    assert.deepEqual(of("list", meta("PartialObjectMetadata")), [yaml, true, "refused", undefined]);
    assert.deepEqual(of("watch", ""), [yaml, true, "refused", undefined]);
    assert.deepEqual(of("watch", ";sv=v1", "json"), ["application/json", true, "object", undefined]);
  });

  it("refuses what there is nothing of: a group of its own by its routes, a custom one by what it accepts", () => {
    const html = { accept: "text/html", verb: "list" } as const;
    const representations = "406: 406: Not Acceptable\n\nAvailable representations: application/json";
    assert.equal(shapeOf(pods, html), `${representations}, application/json;stream=watch`);
    assert.equal(shapeOf(pods, { ...html, verb: "get" }), representations);
    assert.match(
      shapeOf(widgets, html),
      /^406: only the following media types are accepted: application\/json$/,
    );
    for (const accept of [as("Table", "v2"), as("Other")]) {
      assert.match(shapeOf(pods, { accept, verb: "list" }), /^406: only the following/);
    }
    assert.match(
      shapeOf(pods, { accept: as("Table"), verb: "list", tables: false }),
      /^406: only the following/,
    );
  });

  it("refuses a list as an object and an object as a list where the answer would come, by its type in Go", () => {
    const list = { accept: as("PartialObjectMetadata"), verb: "list" } as const;
    const get = { accept: as("PartialObjectMetadataList"), verb: "get" } as const;
    const requested = "then 406: you requested PartialObjectMetadata, but the requested object is a list";
    assert.equal(shapeOf(pods, list), `${requested} (*core.PodList)`);
    assert.equal(
      shapeOf({ ...pods, group: "events.k8s.io", kind: "Event" }, list),
      `${requested} (*core.EventList)`,
    );
    assert.equal(shapeOf({ ...pods, group: "apps" }, list), `${requested} (*apps.PodList)`);
    assert.equal(shapeOf(widgets, list), `${requested} (*unstructured.UnstructuredList)`);
    assert.match(shapeOf(pods, get), /is not a list \(\*core\.Pod\)$/);
    assert.match(shapeOf(widgets, get), /is not a list \(\*unstructured\.Unstructured\)$/);
  });

  it("refuses a watch in YAML where the answer would come", () => {
    const watch = { accept: "application/yaml", verb: "watch", mediaTypes: BOTH } as const;
    assert.match(shapeOf(pods, watch), /^then 406: .*application\/json;stream=watch$/);
    assert.equal(shapeOf(pods, { ...watch, verb: "list" }), "object");
  });
});

describe("partialMetadata", () => {
  it("has the metadata alone, also of an object without", () => {
    const partial = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };
    const metadata = { name: "a" };
    assert.deepEqual(partialMetadata({ kind: "Pod", metadata }, partial.apiVersion), {
      ...partial,
      metadata,
    });
    assert.deepEqual(partialMetadata({}, partial.apiVersion), { ...partial, metadata: {} });
  });
});

describe("wantsPretty", () => {
  const cases: [query: string, userAgent: string | undefined, expected: boolean][] = [
    ["", undefined, false],
    ["", "kubectl/v1.36.3", false],
    ["", "curl/8.5.0", true],
    ["", "Wget/1.21", true],
    ["", "Mozilla/5.0 (X11)", true],
    ["pretty=true", undefined, true],
    ["pretty=1", undefined, true],
    ["pretty=T", undefined, true],
    ["pretty=True", undefined, true],
    ["pretty=TRUE", undefined, true],
    ["pretty=tRuE", "curl/8.5.0", false],
    ["pretty=false", "curl/8.5.0", false],
    ["pretty=x", "curl/8.5.0", false],
    ["pretty=", "curl/8.5.0", true],
    ["pretty=", undefined, false],
  ];
  for (const [query, userAgent, expected] of cases) {
    it(`is ${expected} for ?${query} and ${userAgent ?? "no User-Agent"}`, () => {
      assert.equal(wantsPretty(new URLSearchParams(query), userAgent), expected);
    });
  }
});

describe("prefersGzip", () => {
  const cases: [acceptEncoding: string | undefined, prefers: boolean][] = [
    [undefined, false],
    ["", false],
    ["gzip", true],
    ["GZIP", true],
    ["x-gzip", true],
    ["br, *", true],
    ["br", false],
    ["gzip;q=0", false],
    ["*;q=0", false],
    ["gzip;q=0, *", false],
    ["gzip, gzip;q=0", true],
    ["gzip;q=0.5, identity", false],
    ["gzip;q=0.5, identity;q=0.5", true],
    ["gzip;q=2", false],
    ["identity, gzip;q=1", true],
    ["identity, gzip;q=0.9", false],
    ["gzip;level=9;q=0.1", true],
  ];
  for (const [acceptEncoding, prefers] of cases) {
    it(`is ${prefers} for ${JSON.stringify(acceptEncoding)}`, () => {
      assert.equal(prefersGzip(acceptEncoding), prefers);
    });
  }
});

describe("jsonText", () => {
  it("escapes as Go does, and ends with a line break unless it is indented", () => {
    assert.equal(jsonText({ a: "<&>\u2028\u2029" }), '{"a":"\\u003c\\u0026\\u003e\\u2028\\u2029"}\n');
    assert.equal(jsonText({ a: ["<"] }, { pretty: true }), '{\n  "a": [\n    "\\u003c"\n  ]\n}');
  });
});

describe("matchesTag", () => {
  it("finds a tag, strong or weak, or any", () => {
    for (const header of ['"a"', 'W/"a"', '"b", "a"', "*", '"b",W/"a"']) {
      assert.ok(matchesTag(header, '"a"'), header);
    }
    for (const header of [undefined, "", "a", '"b"', '"*"', '""']) {
      assert.ok(!matchesTag(header, '"a"'), header);
    }
    assert.ok(matchesTag('"a"', 'W/"a"'));
  });

  it("leaves out what is no tag", () => {
    assert.deepEqual(opaqueTags('"a", b, W/"c", *, "*", w/"d"'), ["a", "c", "*"]);
  });
});
