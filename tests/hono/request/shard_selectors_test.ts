import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseShardSelector } from "../../../src/protocol/shard_selector.ts";
import { FakeInformer, object } from "../fake_informer.ts";
// What the parser of apiserver v0.38.0-beta.0 (pkg/sharding) answers: selector, its canonical form, why it is
// refused. `otherwise`: CEL that this library refuses by other texts.
import recorded from "../recorded/shard_selectors.json" with { type: "json" };
import { readApi } from "../read_api.ts";

type Recording = [selector: string, canonical: string | null, problem: string | null];

const PODS = "/api/v1/pods";
const HALF = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";

function api() {
  const informer = FakeInformer.with([object("shop/web", 1)], 10);
  return readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
}

async function refusal(query: string) {
  const response = await api().request(`${PODS}?${query}`);
  const { code, reason, message } = await response.json();
  assert.deepEqual([response.status, code, reason], [400, 400, "BadRequest"], message);
  return message;
}

describe("readApi, a shardSelector", () => {
  it("is read, or refused in a list and in a watch, as by kube-apiserver 1.38", async () => {
    assert.ok(recorded.same.length >= 40);
    for (const [selector, canonical, problem] of recorded.same as Recording[]) {
      const query = `shardSelector=${encodeURIComponent(selector)}`;
      if (canonical === null) {
        for (const watch of ["", "&watch=1"]) {
          assert.equal(await refusal(query + watch), `invalid shard selector: ${problem}`);
        }
      } else {
        const response = await api().request(`${PODS}?${query}`);
        assert.equal((await response.json()).metadata.shardInfo.selector, canonical);
        assert.equal(String(parseShardSelector(canonical)), canonical);
      }
    }
  });

  it("is refused by a text of its own where it is other CEL, or none", async () => {
    for (const [selector] of recorded.otherwise as Recording[]) {
      const message = await refusal(`shardSelector=${encodeURIComponent(selector)}`);
      assert.match(
        message,
        /^invalid shard selector: (CEL parse error: |hexStart(:| must)|un(supported|expected) )/,
        selector,
      );
    }
  });

  it("is no selector if it is empty, and means nothing to a get", async () => {
    for (const path of [`${PODS}?shardSelector=`, "/api/v1/namespaces/shop/pods/web?shardSelector=x"]) {
      const response = await api().request(path);
      assert.equal(response.status, 200);
      const { metadata, kind } = await response.json();
      assert.deepEqual([metadata.shardInfo, kind], [undefined, path === PODS ? "PodList" : kind]);
    }
  });

  it("is looked at after the other options, and before the resourceVersion", async () => {
    const wrong = "shardSelector=x";
    const response = await api().request(`${PODS}?${wrong}&resourceVersionMatch=Exact`);
    assert.equal(response.status, 422);
    assert.match(await refusal(`${wrong}&resourceVersion=x`), /^invalid shard selector/);
    assert.match(await refusal(`${wrong}&resourceVersion=x&watch=1`), /^invalid shard selector/);
    assert.match(await refusal(`${wrong}&labelSelector=,`), /label selector/);
  });

  it("may have as many ranges as a selector may have requirements", async () => {
    const ranges = (count: number) =>
      encodeURIComponent(Array.from({ length: count }, () => HALF).join("||"));
    assert.equal((await api().request(`${PODS}?shardSelector=${ranges(100)}`)).status, 200);
    const message = await refusal(`shardSelector=${ranges(101)}`);
    assert.match(message, /^the shard selector has 101 requirements, and at most 100 are accepted here/);
    const long = await refusal(`shardSelector=${"(".repeat(128 * 1024 + 1)}`);
    assert.match(long, /^the shard selector has 131073 characters/);
    const deep = await refusal(`shardSelector=${"a(".repeat(64 * 1024)}`);
    assert.ok(deep.startsWith("invalid shard selector: CEL parse error: ") && deep.length < 2_000);
    const chain = await refusal(`shardSelector=${"a%7C%7C".repeat(20_000)}a`);
    assert.match(chain, /unexpected expression kind 3/);
    const path = await refusal(`shardSelector=shardRange(a${".a".repeat(40_000)},1,2)`);
    assert.ok(
      path.startsWith('invalid shard selector: unsupported field path "a.a.a') && path.length < 2_000,
    );
  });
});
