/** What a window of the read API shows. */

import assert from "node:assert/strict";
import type { Hono } from "hono";
import type { FakeInformer, TestObject } from "./fake_informer.ts";
import { type Json, names, WatchReader } from "./reading.ts";

/** Changes an informer by a state of an object, and what it is to have. */
export function changesOf(informer: FakeInformer, content: Map<string, TestObject>) {
  return (kind: string, key: string, next: TestObject): void => {
    const version = Number(next.metadata!.resourceVersion);
    if (kind === "put") {
      content.set(key, next);
      informer.put(next);
    } else if (kind === "remove") {
      if (content.delete(key)) informer.remove(key, version);
    } else informer.relist([...content.values()], version);
  };
}

/** A screen: shows what the frames of a window say. */
export class Screen {
  readonly #watch: WatchReader;
  items: Json[] = [];
  window: Json;
  resourceVersion = "";

  constructor(watch: WatchReader) {
    this.#watch = watch;
  }

  static async open(
    api: Hono,
    query: string,
    accept?: string,
    path: string = "/api/v1/pods",
  ): Promise<Screen> {
    const screen = new Screen(await WatchReader.open(api, `${path}?watch=1&${query}`, accept));
    assert.equal(await screen.next(), "ROWS");
    return screen;
  }

  /** Shows the next frame; returns its type, with the changes of rows. */
  async next(): Promise<string> {
    const [{ type, object }] = await this.#watch.events(1);
    this.resourceVersion = object.metadata.resourceVersion;
    if (type === "BOOKMARK") return type;
    this.window = object.window;
    if (type === "ROWS") this.items = object.items ?? object.rows;
    const said: string[] = [type];
    for (const { op, at, from, to, item } of object.changes ?? []) {
      if (op === "remove") this.items.splice(at, 1);
      else if (op === "insert") this.items.splice(at, 0, item);
      else if (op === "move") this.items.splice(to, 0, ...this.items.splice(from, 1));
      else if (op === "update") this.items[at] = item;
      else throw new Error(op);
      said.push(op === "move" ? `${op} ${from} ${to}` : `${op} ${at}`);
    }
    return said.join(", ");
  }

  names(): string[] {
    return names({ items: this.items });
  }

  cancel(): Promise<void> {
    return this.#watch.cancel();
  }

  isSilent(): Promise<boolean> {
    return this.#watch.isSilent();
  }
}
