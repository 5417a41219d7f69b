/**
 * A strict parser of Prometheus' text format, for tests.
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 * @module
 */

import assert from "node:assert/strict";

/** One line with a value. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** All samples of one name. */
export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const VALUE = /^(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]Inf|NaN)$/;

/** Parses a whole page; fails at everything that the format does not allow. */
export function parsePrometheusText(text: string): Map<string, ParsedFamily> {
  const families = new Map<string, ParsedFamily>();
  if (text === "") return families;
  assert.ok(text.endsWith("\n"), "the last line has no line feed");
  let current: { name: string; help?: string; type?: string } | undefined;
  const seen = new Set<string>();
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`).exec(line);
    if (comment !== null) {
      const [, what, name, rest] = comment;
      if (what === "HELP") {
        assert.ok(!families.has(name), `${name} is described twice`);
        assert.match(rest, /^(?:[^\\]|\\\\|\\n)+$/, line);
        current = { name, help: rest };
      } else {
        assert.equal(current?.name, name, `TYPE of ${name} does not follow its HELP`);
        assert.match(rest, /^(counter|gauge|histogram)$/, line);
        families.set(name, { type: rest, help: current?.help ?? "", samples: [] });
      }
      continue;
    }
    const sample = parseSample(line);
    const family = current && families.get(current.name);
    assert.ok(current && family, `${line} is before its TYPE`);
    const suffixes = family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    assert.ok(suffixes.some((suffix) => sample.name === current?.name + suffix), line);
    const id = `${sample.name} ${JSON.stringify([...sample.labels].toSorted())}`;
    assert.ok(!seen.has(id), `${line} is there twice`);
    seen.add(id);
    family.samples.push(sample);
  }
  for (const [name, family] of families) {
    assert.ok(family.samples.length > 0, `${name} has no samples`);
    if (family.type === "counter") { for (const { value } of family.samples) assert.ok(value >= 0, name); }
    if (family.type === "histogram") checkHistogram(name, family.samples);
  }
  return families;
}

function parseSample(line: string): Sample {
  const head = new RegExp(`^(${NAME})(\\{)?`).exec(line);
  assert.ok(head, `no name: ${line}`);
  const labels = new Map<string, string>();
  let rest = line.slice(head[0].length);
  if (head[2] === "{") {
    for (;;) {
      const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\})/.exec(rest);
      assert.ok(label, `no label: ${line}`);
      const [whole, name, value, end] = label;
      assert.ok(!labels.has(name), `the label ${name} is there twice: ${line}`);
      labels.set(name, value.replace(/\\(["\\n])/g, (_, escape) => escape === "n" ? "\n" : escape));
      rest = rest.slice(whole.length);
      if (end === "}") break;
    }
  }
  assert.ok(rest.startsWith(" "), line);
  const number = rest.slice(1);
  assert.match(number, VALUE, line);
  const value = number.endsWith("Inf") ? (number.startsWith("-") ? -Infinity : Infinity) : Number(number);
  return { name: head[1], labels, value };
}

/**
 * Buckets are cumulative and end with +Inf, which is the count; there is
 * one sum and one count for each set of labels.
 */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, { buckets: [number, number][]; sum?: number; count?: number }>();
  for (const sample of samples) {
    const labels = new Map(sample.labels);
    const bound = labels.get("le");
    labels.delete("le");
    const key = JSON.stringify([...labels].toSorted());
    const group = groups.get(key) ?? { buckets: [] };
    groups.set(key, group);
    if (sample.name === `${name}_bucket`) {
      assert.ok(bound !== undefined, `a bucket of ${name} has no le`);
      group.buckets.push([bound === "+Inf" ? Infinity : Number(bound), sample.value]);
    } else {
      assert.equal(bound, undefined);
      if (sample.name === `${name}_sum`) group.sum = sample.value;
      else group.count = sample.value;
    }
  }
  for (const { buckets, sum, count } of groups.values()) {
    assert.ok(sum !== undefined && count !== undefined && buckets.length > 1, name);
    for (let i = 1; i < buckets.length; i++) {
      assert.ok(buckets[i][0] > buckets[i - 1][0], `${name}: bounds ascend`);
      assert.ok(buckets[i][1] >= buckets[i - 1][1], `${name}: buckets are cumulative`);
    }
    assert.deepEqual(buckets.at(-1), [Infinity, count], name);
  }
}
