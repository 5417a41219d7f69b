import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Logger } from "@listwatch/cache";
import {
  type InMemoryApiServer,
  simulateController,
  SimulationError,
  type SimulationOptions,
} from "@listwatch/cache/testing";
import { realClock } from "../../src/util/clock.ts";
import { CORRECT, FAULTY, type Subject } from "../testing/controllers/controllers.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";

// One in 150 worlds shows the rarest of the faults: of 500 worlds none does in one run of thirty.
const WORLDS = 2_000;
const FROM = 1 + Math.floor(realClock.now() % 1_000_000_000);

const simulate = (subject: Subject, options: Partial<SimulationOptions>) =>
  simulateController(subject.define, { ...subject.expected, customResources: [WIDGET_RESOURCE], ...options });

const failureOf = async (subject: Subject, options: Partial<SimulationOptions>): Promise<SimulationError> => {
  try {
    await simulate(subject, options);
  } catch (error) {
    if (error instanceof SimulationError) return error;
    throw error;
  }
  assert.fail(`${subject.name}: found nothing (seeds from ${options.from})`);
};

/** Everything that programs send and log in five worlds, with the times. */
const tracesOf = async (subject: Subject): Promise<string[][]> => {
  const traces: string[][] = [];
  const write = (text: string) => void traces.at(-1)!.push(text);
  const logger: Logger = { debug: write, info: write, warn: write, error: write };
  const start = (server: InMemoryApiServer) => {
    const lines: string[] = [];
    traces.push(lines);
    server.intercept(async (request, next, { clock }) => {
      const sent = `${clock.now()} ${request.method} ${request.url}`;
      lines.push(`${sent} ${await request.clone().text()}`);
      const response = await next(request);
      lines.push(`${clock.now()} ${response.status} to ${sent}`);
      return response;
    });
  };
  for (let from = FROM; from < FROM + 5; from++) {
    await simulate(subject, { worlds: 1, from, start, manager: { logger } }).catch((error) => {
      if (!(error instanceof SimulationError) && !/wrote nothing/.test(String(error))) throw error;
      traces.length = from - FROM + 1; // without those of its search for a shorter story
    });
  }
  return traces;
};

describe("simulateController", () => {
  for (const subject of CORRECT) {
    it(`reports nothing for a correct controller: ${subject.name} (seeds from ${FROM})`, async () => {
      const { worlds, writes } = await simulate(subject, { worlds: 100, from: FROM });
      assert.equal(worlds, 100);
      assert.ok(writes > 100, `only ${writes} writes`);
    });
  }

  for (const subject of FAULTY) {
    it(`finds the fault of one within 2,000 worlds: ${subject.name} (seeds from ${FROM})`, async () => {
      const error = await failureOf(subject, { worlds: WORLDS, from: FROM });
      assert.match(error.what, /^(eventually|never) "/);
      assert.ok(error.story.length > 3);
    });
  }

  it("repeats a world by its seed, with the same story", async () => {
    const subject = FAULTY[1];
    const first = await failureOf(subject, { worlds: 500, from: 1 });
    const again = await failureOf(subject, { worlds: 1, from: first.seed });
    assert.deepEqual(again.story, first.story);
    assert.match(first.message, new RegExp(`from: ${first.seed}, worlds: 1`));
  });

  it("leaves out of the story what is not needed", async () => {
    const { story } = await failureOf(FAULTY[1], { worlds: 500, from: 1 });
    const count = (text: string) => story.filter((line) => line.includes(text)).length;
    assert.equal(count("is killed"), 1);
    assert.equal(count("  delete"), 1);
    assert.equal(count("is frozen"), 0);
  });
});

describe("simulateController of one seed", () => {
  it("makes the same requests and lines, at the same times, whenever the seed is the same", async () => {
    for (const subject of [FAULTY[0], FAULTY.at(-1)!, ...CORRECT]) {
      const [first, ...others] = [await tracesOf(subject), await tracesOf(subject), await tracesOf(subject)];
      assert.equal(first.length, 5);
      for (const other of others) assert.deepEqual(other, first, subject.name);
    }
  });
});
