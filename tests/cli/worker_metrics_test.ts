import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PrometheusMetrics } from "@listwatch/cache/hono";
import { joinMetrics } from "../../src/cli/worker_metrics.ts";
import { parsePrometheusText } from "../hono/prometheus_text.ts";

describe("joinMetrics", () => {
  it("keeps one help text and type for each name, and labels the measurements of workers", () => {
    const [parent, first, second] = [1, 2, 3].map((value) => {
      const metrics = new PrometheusMetrics();
      metrics.gauge("read_api_readers", value, {});
      metrics.count("reflector_lists_total", value, { name: 'a "b" {c}\n# HELP d' });
      return metrics;
    });
    second.observe("read_api_request_duration_seconds", 0.1, { verb: "get" });
    const text = joinMetrics([
      { text: parent.text() },
      { worker: 1, text: first.text() },
      { worker: 2, text: second.text() },
    ]);
    const families = parsePrometheusText(text);
    assert.equal(text.match(/^# HELP reflector_lists_total /gm)?.length, 1);
    const values = (name: string) =>
      families.get(name)?.samples.map(({ labels, value }) => [labels.get("worker"), value]);
    assert.deepEqual(values("read_api_readers"), [[undefined, 1], ["1", 2], ["2", 3]]);
    assert.deepEqual(values("reflector_lists_total"), [[undefined, 1], ["1", 2], ["2", 3]]);
    const buckets = families.get("read_api_request_duration_seconds")?.samples ?? [];
    assert.ok(buckets.length > 3);
    for (const { labels } of buckets) {
      assert.deepEqual([labels.get("worker"), labels.get("verb")], ["2", "get"]);
    }
  });

  it("is empty without measurements", () => {
    assert.equal(joinMetrics([{ text: "" }, { worker: 1, text: "" }]), "");
  });
});
