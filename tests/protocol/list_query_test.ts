import assert from "node:assert/strict";
import { builtinResource } from "../../src/protocol/builtin_resources.ts";
import { fieldRules, METADATA_FIELDS } from "../../src/protocol/selectable_fields.ts";
import { describe, it } from "node:test";
import { encodeContinue } from "../../src/protocol/continue_token.ts";
import {
  type ListQueryOptions,
  parseGetQuery,
  parseListQuery,
  queryParameters,
  refusedTimeout,
  timeoutOf,
} from "../../src/protocol/request_url.ts";
import { isStatus } from "../../src/protocol/statuses.ts";

function accepted(query: string, options: ListQueryOptions = {}) {
  const parsed = parseListQuery(new URLSearchParams(query), { fields: () => METADATA_FIELDS, ...options });
  assert.ok(!isStatus(parsed), JSON.stringify(parsed));
  return parsed;
}

function refused(query: string, options: ListQueryOptions = {}) {
  const parsed = parseListQuery(new URLSearchParams(query), { fields: () => METADATA_FIELDS, ...options });
  assert.ok(isStatus(parsed), `${query} was accepted`);
  return parsed;
}

describe("parseListQuery", () => {
  it("reads the parameters of clients, and ignores unknown ones", () => {
    const { watch, options } = accepted(
      "&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=42&timeout=6m21s&pretty=1",
    );
    assert.equal(watch, true);
    assert.deepEqual(options, { timeoutSeconds: 290, allowWatchBookmarks: true, resourceVersion: "42" });
    assert.deepEqual(accepted("?&limit=500".slice(1)).options, { limit: 500 });
  });

  it("takes bookmarks for wanted only where a watch says so", () => {
    assert.equal(accepted("watch=1&resourceVersion=5").options.allowWatchBookmarks, undefined);
    assert.equal(
      accepted("watch=1&resourceVersion=5&allowWatchBookmarks=0").options.allowWatchBookmarks,
      undefined,
    );
    assert.equal(accepted("allowWatchBookmarks=1").options.allowWatchBookmarks, undefined);
  });

  it("reads everything but 0 and false as true", () => {
    for (const value of ["1", "true", "abc", "", "FALSE "]) {
      assert.equal(accepted(`watch=${value}`).watch, true, value);
    }
    for (const value of ["0", "false", "False", "fal\u017fe"]) {
      assert.equal(accepted(`watch=${value}`).watch, false, value);
    }
    assert.equal(accepted("").watch, false);
  });

  it("lets the caller overrule watch", () => {
    assert.equal(accepted("watch=1", { watch: false }).watch, false);
    assert.equal(accepted("", { watch: true }).watch, true);
  });

  it("reads the first of several values", () => {
    assert.equal(accepted("limit=3&limit=x").options.limit, 3);
  });

  it("has no limit for 0 and below", () => {
    for (const limit of ["0", "-1"]) assert.equal(accepted(`limit=${limit}`).options.limit, undefined);
  });

  it("refuses malformed numbers with 400", () => {
    assert.equal(refused("limit=ten").message, 'strconv.ParseInt: parsing "ten": invalid syntax');
    assert.equal(refused("limit=").code, 400);
    assert.equal(refused("limit=1e3").code, 400);
    assert.equal(refused("timeoutSeconds=soon").reason, "BadRequest");
    assert.match(refused("limit=9223372036854775808").message ?? "", /value out of range/);
    assert.equal(accepted("limit=9223372036854775807").options.limit, 2 ** 63);
    const ofDigits = (digits: number) => "7".padStart(digits, "0");
    assert.equal(accepted(`limit=${ofDigits(1_000)}`).options.limit, 7);
    assert.match(refused(`limit=${ofDigits(1_001)}`).message ?? "", /value out of range/);
    assert.equal(accepted(`resourceVersion=${ofDigits(1_000)}`).options.resourceVersion, "7");
    assert.match(refused(`resourceVersion=${ofDigits(1_001)}`).message ?? "", /value out of range/);
  });

  it("refuses selectors that do not parse, and unknown fields, with 400", () => {
    assert.equal(refused("labelSelector=app in").code, 400);
    assert.equal(refused("fieldSelector=status.phase").code, 400);
    assert.equal(
      refused("fieldSelector=spec.nodeName=n1").message,
      '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"',
    );
    const fields = () => fieldRules(builtinResource({ group: "", version: "v1", resource: "pods" })!);
    assert.equal(
      refused("fieldSelector=spec.x!=1", { fields }).message,
      "field label not supported: spec.x",
    );
    assert.equal(
      accepted("fieldSelector=spec.nodeName=n1", { fields }).fields?.requirements.length,
      1,
    );
  });

  it("selects the object of a name, whose field selector must name it, too", () => {
    const options = { name: "a,b=c" };
    assert.equal(accepted("", options).fields?.requiresExactMatch("metadata.name"), "a,b=c");
    const named = accepted("fieldSelector=metadata.namespace=shop,metadata.name=web", { name: "web" });
    assert.equal(named.fields?.requirements.length, 2);
    for (const selector of ["metadata.name=other", "metadata.name!=web", "metadata.namespace=shop"]) {
      const status = refused(`fieldSelector=${selector}`, { name: "web" });
      assert.equal(status.code, 400);
      assert.equal(status.message, "fieldSelector metadata.name doesn't match requested name");
    }
  });

  it("refuses selectors that cost more than a limit, and takes those that come up to it", () => {
    const limits = { maxRequirements: 2, maxValues: 3, maxTextLength: 40 };
    const texts: [name: "labelSelector" | "fieldSelector", at: string, beyond: string, what: string][] = [
      ["labelSelector", "a in (x,y),b=z", "a in (x,y),b in (z,w)", "label selector has 4 values"],
      ["labelSelector", "a,b", "a,b,c", "label selector has 3 requirements"],
      ["labelSelector", "a".repeat(40), "a".repeat(41), "label selector has 41 characters"],
      ["fieldSelector", "a=1,b=1", "a=1,b=1,c=1", "field selector has 3 requirements"],
      ["fieldSelector", `a=${"b".repeat(38)}`, `a=${"b".repeat(39)}`, "field selector has 41 characters"],
    ];
    for (const [name, at, beyond, what] of texts) {
      const query = (text: string) => String(new URLSearchParams({ [name]: text }));
      accepted(query(at), { limits, fields: undefined });
      const status = refused(query(beyond), { limits, fields: undefined });
      assert.equal(status.code, 400);
      assert.ok(status.message!.startsWith(`the ${what}, and at most `), status.message);
    }
  });

  it("returns parsed selectors, and none if everything is selected", () => {
    const { labels, fields, options } = accepted(
      "labelSelector=app in (web,api)&fieldSelector=metadata.name=x",
    );
    assert.deepEqual(options, { labelSelector: "app in (web,api)", fieldSelector: "metadata.name=x" });
    assert.equal(labels?.matches({ app: "web" }), true);
    assert.equal(fields?.matches({ "metadata.name": "y" }), false);
    assert.deepEqual(
      [accepted("labelSelector=&fieldSelector=").labels, accepted("fieldSelector=,").fields],
      [undefined, undefined],
    );
  });

  it("refuses a malformed resourceVersion: 400 for a list, 500 without a reason for a watch", () => {
    const list = refused("resourceVersion=abc");
    assert.equal(list.code, 400);
    assert.equal(
      list.message,
      'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    );
    const watch = refused("watch=1&resourceVersion=-5");
    assert.equal(watch.code, 500);
    assert.ok(!("reason" in watch));
    assert.equal(refused("resourceVersion=18446744073709551616").code, 400);
    assert.equal(
      accepted("resourceVersion=18446744073709551615").options.resourceVersion,
      "18446744073709551615",
    );
    assert.equal(accepted("resourceVersion=007").options.resourceVersion, "7");
  });

  it("reads 00 as an API server: as 0, but as no resourceVersion where there is a limit", () => {
    assert.deepEqual(accepted("resourceVersion=00").options, { resourceVersion: "0" });
    const match = "resourceVersionMatch=Exact";
    for (const query of ["resourceVersion=00&limit=1", `resourceVersion=000&limit=1&${match}`]) {
      assert.deepEqual(accepted(query).options, { limit: 1 }, query);
    }
    assert.deepEqual(accepted("resourceVersion=0&limit=1").options, { resourceVersion: "0", limit: 1 });
    assert.equal(accepted("watch=1&resourceVersion=00&limit=1").options.resourceVersion, "0");
  });

  it("refuses contradictions in a list with 422", () => {
    const status = refused("resourceVersionMatch=Exact");
    assert.deepEqual(status, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message:
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
      reason: "Invalid",
      details: {
        group: "meta.k8s.io",
        kind: "ListOptions",
        causes: [{
          reason: "FieldValueForbidden",
          message: "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
          field: "resourceVersionMatch",
        }],
      },
      code: 422,
    });
    assert.match(
      refused("resourceVersionMatch=Newest&resourceVersion=1").message ?? "",
      / resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""$/,
    );
    assert.equal(refused("resourceVersionMatch=Exact&resourceVersion=0").code, 422);
    for (const [resourceVersionMatch, resourceVersion] of [["NotOlderThan", "0"], ["Exact", "5"]] as const) {
      const query = String(new URLSearchParams({ resourceVersionMatch, resourceVersion }));
      assert.deepEqual(accepted(query).options, { resourceVersionMatch, resourceVersion });
    }
    assert.equal(refused("resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x").code, 422);
    for (const value of ["true", "false"]) assert.equal(refused(`sendInitialEvents=${value}`).code, 422);
    assert.match(refused("resourceVersionMatch=x").message ?? "", /is invalid: \[.*, .*\]$/);
  });

  it("refuses contradictions in a watch with 422", () => {
    for (
      const query of [
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
      ]
    ) {
      assert.equal(refused(`watch=1&${query}`).code, 422, query);
    }
    const { details } = refused("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact");
    assert.deepEqual(details?.causes, [
      {
        reason: "FieldValueForbidden",
        message: "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        field: "resourceVersionMatch",
      },
      {
        reason: "FieldValueNotSupported",
        message: 'Unsupported value: "Exact": supported values: "NotOlderThan"',
        field: "resourceVersionMatch",
      },
    ]);
    assert.equal(refused("watch=1&resourceVersionMatch=NotOlderThan").code, 422, "also from the start");
  });

  it("refuses the first of several mistakes that an API server finds", () => {
    const mistakes = {
      "timeoutSeconds=x": /"x"/,
      "limit=y": /"y"/,
      "labelSelector=(": /label selector/,
      "fieldSelector=z": /field selector/,
      "resourceVersionMatch=q": /ListOptions/,
      "fieldSelector=spec.nothing%3D1": /not a known field selector/,
      "resourceVersion=v": /"v"/,
    };
    const queries = Object.keys(mistakes);
    for (const [i, first] of queries.entries()) {
      for (const later of queries.slice(i + 1)) {
        for (const query of [`${first}&${later}`, `${later}&${first}`]) {
          const isSame = first.split("=", 1)[0] === later.split("=", 1)[0];
          if (isSame || (query.includes("Match") && query.includes("Version=v"))) continue;
          assert.match(refused(query).message!, Object.values(mistakes)[i], query);
        }
      }
    }
  });

  it("checks the options of a watch by its path as those of a list, as an API server does", () => {
    const status = refused("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", {
      watch: true,
    });
    assert.equal(status.details?.causes?.[0].field, "sendInitialEvents");
    assert.equal(
      accepted("resourceVersionMatch=NotOlderThan&resourceVersion=1", { watch: true }).watch,
      true,
    );
    const both = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert.equal(accepted(both, { watch: true }).options.sendInitialEvents, true);
    assert.equal(refused("watch=1&resourceVersionMatch=Exact", { watch: false }).code, 422);
    const exact = "watch=1&resourceVersionMatch=Exact&resourceVersion=5";
    assert.equal(accepted(exact, { watch: false }).options.resourceVersionMatch, "Exact");
  });

  it("reads the token of continue before it refuses a resourceVersion, which it does not read", () => {
    const token = encodeContinue({ resourceVersion: "7", start: "a" });
    for (const version of ["5", "abc"]) {
      const status = refused(`continue=${token}&resourceVersion=${version}`);
      assert.equal(status.message, "specifying resource version is not allowed when using continue");
      const broken = refused(`continue=%25&resourceVersion=${version}`);
      assert.equal(broken.code, 400);
      assert.match(
        broken.message!,
        /^invalid continue token: continue key is not valid: illegal base64 data/,
      );
    }
    assert.equal(accepted("watch=1&continue=x&resourceVersion=5").options.continue, undefined);
  });

  it("refuses an object with export, in any form that is true", () => {
    for (const value of ["true", "1", "", "yes"]) {
      const query = parseGetQuery(new URLSearchParams({ export: value, resourceVersion: "abc" }));
      assert.ok(isStatus(query));
      assert.equal(query.code, 400);
      const message = "the export parameter, deprecated since v1.14, is no longer supported";
      assert.equal(query.message, message);
    }
    for (const value of ["false", "0"]) {
      assert.ok(!isStatus(parseGetQuery(new URLSearchParams({ export: value }))));
    }
    assert.ok(accepted("export=true"));
  });

  it("refuses continue with a resourceVersion other than 0", () => {
    assert.equal(refused("continue=x&resourceVersion=5").code, 400);
    assert.deepEqual(accepted("continue=x&resourceVersion=0").options, {
      continue: "x",
      resourceVersion: "0",
    });
  });

  it("reads the resourceVersion of an object without its leading zeros", () => {
    const query = parseGetQuery(new URLSearchParams({ resourceVersion: "007" }));
    assert.deepEqual(query, {
      watch: false,
      options: { resourceVersion: "7" },
      labels: undefined,
      fields: undefined,
      shard: undefined,
    });
    const latest = parseGetQuery(new URLSearchParams());
    assert.deepEqual(!isStatus(latest) && latest.options, {});
  });

  it("refuses a malformed resourceVersion of an object with 500, without a reason", () => {
    const query = parseGetQuery(new URLSearchParams({ resourceVersion: "x" }));
    assert.ok(isStatus(query));
    assert.deepEqual([query.code, query.reason], [500, undefined]);
    assert.match(query.message ?? "", /^resourceVersion: Invalid value: "x": .* invalid syntax$/);
  });

  it("adds sendInitialEvents to a watch without a resourceVersion, unless the query sets it", () => {
    assert.equal(accepted("watch=1").options.sendInitialEvents, true);
    assert.equal(accepted("watch=1&resourceVersion=0").options.sendInitialEvents, true);
    assert.equal(accepted("watch=1&resourceVersion=00").options.sendInitialEvents, true);
    assert.equal(accepted("watch=1&resourceVersion=7").options.sendInitialEvents, undefined);
    const explicit = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    assert.equal(accepted(explicit).options.sendInitialEvents, false);
    assert.equal(accepted("").options.sendInitialEvents, undefined);
  });
});

describe("refusedTimeout", () => {
  const refusedOf = (query: string) => refusedTimeout(timeoutOf(`http://cache/api/v1/pods?limit=5&${query}`));

  it("refuses a timeout that is no duration with 400, and one that is over at once with 504", () => {
    for (
      const timeout of [
        "32s",
        "6m21s",
        "1h15m30.918s",
        "-5ms",
        "0",
        ".5s",
        "1.s",
        "",
        "1ms",
        "-1ns",
        "0.001s",
      ]
    ) {
      assert.equal(refusedOf(`timeout=${encodeURIComponent(timeout)}`), undefined, timeout);
    }
    for (const timeout of ["abc", "s", ".s", "-", "9999999h"]) {
      const status = refusedOf(`timeout=${encodeURIComponent(timeout)}`);
      assert.equal(status?.code, 400);
      assert.equal(
        status?.message,
        `invalid timeout specified in the request URL - time: invalid duration "${timeout}"`,
      );
    }
    for (const timeout of ["100us", "+1ns", "0.9ms"]) {
      const status = refusedOf(`timeout=${encodeURIComponent(timeout)}`);
      assert.deepEqual([status?.code, status?.reason], [504, "Timeout"]);
      assert.equal(status?.message, "Timeout: request did not complete within the allotted timeout");
    }
    assert.match(refusedOf("timeout=10")!.message!, /missing unit in duration "10"$/);
    assert.match(refusedOf("timeout=1d")!.message!, /unknown unit "d" in duration "1d"$/);
  });
});

describe("queryParameters", () => {
  it("leaves out what an API server does not read", () => {
    const cases = {
      "?limit=5&watch=1": "limit=5&watch=1",
      "limit=5;x=1&watch=1": "watch=1",
      "?limit=%zz&watch=1": "watch=1",
      "limit=5%": "",
      "labelSelector=a%3Db": "labelSelector=a%3Db",
      "??limit=5&watch=1": "%3Flimit=5&watch=1",
    };
    for (const [search, read] of Object.entries(cases)) assert.equal(String(queryParameters(search)), read);
  });
});
