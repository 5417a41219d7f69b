import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  parseScreenQuery,
  refusedParameter,
  refusedScreenQuery,
  type ScreenQuery,
  type ScreenQueryOptions,
} from "../../src/protocol/screen_query.ts";
import type { Status } from "../../src/meta/status.ts";
import { isStatus } from "../../src/protocol/statuses.ts";

const LIST: ScreenQueryOptions = { verb: "list", shape: "object" };
const WATCH: ScreenQueryOptions = { verb: "watch", shape: "object" };

function parsed(parameters: Record<string, string> | string, options = LIST) {
  return parseScreenQuery(new URLSearchParams(parameters), options);
}

function accepted(parameters: Record<string, string>, options = LIST): ScreenQuery {
  const query = parsed(parameters, options);
  assert.ok(query !== undefined && !isStatus(query), JSON.stringify(query));
  return query;
}

/** The causes, as `parameter: message`. */
function refused(parameters: Record<string, string> | string, options = LIST): string[] {
  const status = parsed(parameters, options);
  assert.ok(status !== undefined && isStatus(status), `${JSON.stringify(parameters)} was accepted`);
  assert.equal(status.code, 400);
  assert.equal(status.reason, "BadRequest");
  const causes = status.details?.causes ?? [];
  return causes.map(({ field, message }) => {
    assert.ok(status.message?.includes(`${field}: ${message}`));
    return `${field}: ${message}`;
  });
}

describe("parseScreenQuery", () => {
  it("has nothing for the queries of plain clients", () => {
    const plain =
      "watch=1&limit=500&labelSelector=a&fieldSelector=b&pretty=1&fieldManager=x&partial=true&x=y" +
      "&fieldValidation=Strict&force=1&timeout=5s&continue=c&includeObject=None&dryRun=All";
    assert.equal(parsed(plain), undefined);
  });

  it("reads fields in one order, each once, without what is in another one", () => {
    const { fields = [] } = accepted({
      fields:
        'status.phase, metadata.name,spec.containers[].image,status,metadata["labels"]["a.b/c"],spec.volumes[]',
    });
    assert.deepEqual(
      fields.map(({ text }) => text),
      ['metadata.labels["a.b/c"]', "metadata.name", "spec.containers[].image", "spec.volumes", "status"],
    );
    assert.deepEqual(fields[0].segments, ["metadata", "labels", "a.b/c"]);
  });

  it("says where a path is wrong, and what to write", () => {
    assert.deepEqual(refused({ fields: "metadata.name,spec..x" }), [
      'fields: "," is missing at character 19 ("..x"); separate the parts by commas',
    ]);
    assert.match(refused({ fields: "" })[0], /^fields: a path of a field is missing at its end; write it as/);
    assert.match(refused({ fields: "a,,b" })[0], /missing at character 3 \(",b"\)/);
    assert.match(refused({ fields: "[].a" })[0], /^fields: Cannot read the path/);
  });

  it("reads elements by the value of a member, but not for what is sent", () => {
    const path = "status.conditions[type=Ready].status";
    const { groupBy, sortBy } = accepted({ groupBy: path }) as ScreenQuery;
    assert.deepEqual([groupBy?.map(({ text }) => text), sortBy], [[path], undefined]);
    const [{ text }] = accepted({ sortBy: 'a[].b[type="x y"].c:desc' }).sortBy!;
    assert.equal(text, 'a[].b[type="x y"].c:desc');
    assert.match(refused({ fields: path })[0], /^fields: .*is of some elements of an array; write \[\]/);
    assert.match(refused({ groupBy: "[type=Ready].status" })[0], /^groupBy: Cannot read the path/);
    assert.match(refused({ groupBy: "a[type=]" })[0], /^groupBy: .*"\[type=\]"/);
    for (const text of ['"\\x"', '"\\u12"', '"\n"', '"']) {
      assert.match(refused({ groupBy: `a[type=${text}]` })[0], /^groupBy: "," is missing at character 2/);
      assert.match(refused({ sortBy: `a[type=${text}].b` })[0], /^sortBy: there is no comma .* character 2/);
      assert.match(refused({ filter: `a[type=${text}].b=1` })[0], /^filter: there is no operator behind a/);
    }
  });

  it("limits the number of paths and keys", () => {
    const paths = (count: number) => Array.from({ length: count }, (_, i) => `a.b${i}`).join(",");
    assert.equal(accepted({ fields: paths(64) }).fields?.length, 64);
    assert.match(refused({ fields: paths(65) })[0], /65 paths, and at most 64/);
    assert.match(refused({ sortBy: paths(9) })[0], /9 keys, and at most 8/);
    assert.match(refused({ groupBy: paths(5) })[0], /5 paths, and at most 4/);
    assert.match(refused({ fields: paths(10_000) })[0], /10000 paths, and at most 64/);
    const deep = (depth: number) => Array.from({ length: depth }, () => "a").join(".");
    assert.equal(accepted({ fields: deep(64) }).fields?.length, 1);
    assert.match(refused({ fields: deep(65) })[0], /^fields: it has 65 fields in one path, and at most 64/);
    const [long] = refused({ filter: `${"a[]".repeat(5_000)}=1` });
    assert.match(long, /^filter: it has 15000 characters in one path, and at most 1024 are accepted/);
  });

  it("reads the keys of an order", () => {
    const [quoted] = accepted({ sortBy: 'column("Size, in GB")' }).sortBy!;
    assert.deepEqual(quoted.by, { type: "column", name: "size, in gb" });
    const { sortBy = [], limit, offset } = accepted({
      sortBy:
        "status.startTime:desc,metadata.name:asc, sum(spec.containers[].restarts):desc,column(Restarts)," +
        "count(spec.x[]),column(Size (GB)):desc",
      limit: "50",
      offset: "100",
    });
    assert.deepEqual(sortBy.map(({ text }) => text), [
      "status.startTime:desc",
      "metadata.name",
      "sum(spec.containers[].restarts):desc",
      'column("restarts")',
      "count(spec.x[])",
      'column("size (gb)"):desc',
    ]);
    assert.deepEqual([limit, offset], [50, 100]);
    assert.deepEqual(sortBy.map(({ by }) => by.type), ["field", "field", "sum", "column", "count", "column"]);
    assert.deepEqual(sortBy.map(({ isDescending }) => isDescending), [true, false, true, false, false, true]);
  });

  it("refuses keys that cannot be read", () => {
    assert.match(
      refused({ sortBy: "a:down" })[0],
      /^sortBy: there is no comma .* at character 2 \(":down"\)/,
    );
    assert.match(refused({ sortBy: "avg(a)" })[0], /there is no function avg/);
    assert.match(refused({ sortBy: "sum(a" })[0], /"\)" is missing at its end/);
    assert.match(refused({ sortBy: "column()" })[0], /the name of a column is missing/);
  });

  it("requires a number of rows of a window", () => {
    assert.match(refused({ sortBy: "a" }, WATCH)[0], /^limit: a window has 1 to 1,000 rows/);
    assert.match(refused({ sortBy: "a", limit: "1001" }, WATCH)[0], /^limit: /);
    assert.match(refused({ sortBy: "a", limit: "0" }, WATCH)[0], /^limit: /);
    assert.equal(accepted({ sortBy: "a", limit: "0" }).limit, 0);
    assert.match(refused({ sortBy: "a", limit: "-1" }, WATCH)[0], /^limit: "-1" is no number of rows/);
    for (const limit of [1, 1_000]) {
      assert.equal(accepted({ sortBy: "a", limit: String(limit) }, WATCH).limit, limit);
    }
  });

  it("leaves limit to the API without an order", () => {
    assert.equal(accepted({ fields: "a", limit: "x" }).limit, undefined);
  });

  it("reads the object around which a page is", () => {
    assert.equal(accepted({ sortBy: "a", around: "shop/web-1" }).around, "shop/web-1");
    assert.match(refused({ sortBy: "a", around: "a/b/c" })[0], /^around: .*write namespace\/name/);
  });

  it("refuses parameters that contradict each other", () => {
    const cases: [Record<string, string>, ScreenQueryOptions, RegExp][] = [
      [{ offset: "1" }, LIST, /^offset: .*say of which in sortBy/],
      [{ around: "a" }, LIST, /^around: .*say of which in sortBy/],
      [{ sortBy: "a", around: "a", offset: "0" }, LIST, /^around: offset says where already/],
      [{ sum: "a" }, LIST, /^sum: .*groupBy/],
      [{ groupBy: "a", sortBy: "a" }, LIST, /^groupBy: .*leave out sortBy/],
      [{ groupBy: "a", fields: "a" }, LIST, /^groupBy: .*leave out fields/],
      [{ filter: "a" }, { verb: "get", shape: "object" }, /^filter: one object is requested/],
      [
        { fields: "a" },
        { verb: "watch", shape: "PartialObjectMetadata" },
        /^fields: a PartialObjectMetadata/,
      ],
      [{ groupBy: "a" }, { verb: "list", shape: "Table" }, /^groupBy: groups are no Table/],
    ];
    for (const [parameters, options, message] of cases) {
      const causes = refused(parameters, options);
      assert.equal(causes.length, 1);
      assert.match(causes[0], message);
    }
    accepted({ filter: "a" }, { verb: "list", shape: "PartialObjectMetadata" });
    accepted({ fields: "a" }, { verb: "get", shape: "object" });
  });

  it("names the reason of a cause as an API server does", () => {
    const status = parsed({ sum: "a" }) as Status;
    const [cause] = status.details?.causes ?? [];
    assert.deepEqual([cause.reason, cause.field], ["FieldValueInvalid", "sum"]);
  });

  it("names a cause for each wrong parameter", () => {
    assert.deepEqual(
      refused({ fields: "", filter: "a=(", sortBy: "()" }).map((cause) => cause.split(":")[0]),
      ["fields", "filter", "sortBy"],
    );
  });

  it("refuses a parameter that is given twice", () => {
    assert.match(refused("filter=a&filter=b")[0], /^filter: it is given twice/);
  });

  it("asks what was meant by a parameter that is nearly one", () => {
    const meant: Record<string, string> = {
      sortby: "sortBy",
      sort: "sortBy",
      SORT_BY: "sortBy",
      orderBy: "sortBy",
      sorts: "sortBy",
      order: "sortBy",
      group: "groupBy",
      groups: "groupBy",
      sums: "sum",
      field: "fields",
      Fields: "fields",
      feilds: "fields",
      filters: "filter",
      filtre: "filter",
      "sortBy[]": "sortBy",
      group_by: "groupBy",
      groupby: "groupBy",
      Sum: "sum",
      ofset: "offset",
      ields: "fields",
      fieldss: "fields",
      fikter: "filter",
      filtee: "filter",
      iflter: "filter",
      xilter: "filter",
    };
    for (const [name, parameter] of Object.entries(meant)) {
      assert.deepEqual(refused({ [name]: "x" }), [`${name}: unknown parameter; did you mean ${parameter}?`]);
    }
  });

  it("ignores parameters that are not so near", () => {
    for (
      const name of [
        "sam",
        "su",
        "fieldsxx",
        "fxxlds",
        "fitlre",
        "ilterf",
        "fil",
        "",
        "sort_________________",
      ]
    ) {
      assert.equal(parsed({ [name]: "x" }), undefined, name);
    }
    assert.deepEqual(refused({ ["sort" + "_".repeat(16)]: "x" }).length, 1);
  });

  it("quotes no more than the beginning of a wrong number or key", () => {
    const text = "x".repeat(100);
    assert.match(refused({ sortBy: "a", limit: text })[0], /^limit: "x{20}" is no number of rows/);
    assert.match(
      refused({ sortBy: "a", around: "a/b/" + text, limit: "1" })[0],
      /^around: "a\/b\/x{76}" names no/,
    );
  });

  it("asks of a few of them, as thousands would make an answer that is longer than the request", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `sort_${i}`);
    assert.equal(refused(names.join("&")).length, 7);
  });
});

describe("refusedParameter", () => {
  it("refuses one parameter", () => {
    const status = refusedParameter("around", "it is not there");
    assert.deepEqual([status.code, status.message], [400, "around: it is not there"]);
  });
});

describe("refusedScreenQuery", () => {
  it("refuses the parameters where they would be ignored, and nothing else", () => {
    const why = "pods is not cached here";
    const status = refusedScreenQuery(new URLSearchParams("fields=a&sort=b&limit=1"), why);
    assert.deepEqual(status?.details?.causes?.map(({ field }) => field), ["fields"]);
    assert.equal(status?.message, `fields: ${why}`);
    assert.equal(refusedScreenQuery(new URLSearchParams("sort=b&limit=1"), why), undefined);
  });
});
