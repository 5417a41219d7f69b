/** Rows that follow the selected objects of a content; kept while they are read. */

import type { KubernetesObject } from "../../meta/object.ts";
import { StatusError } from "../../meta/status.ts";
import { cutPaths, type ScreenSegment, someValue } from "../../protocol/screen_values.ts";
import type { Held } from "../../store/holding.ts";
import { FieldCut } from "../../text/field_cut.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import { OPEN_UNITS, type Pacer } from "../../util/turns.ts";
import type { Content } from "../content/content.ts";
import type { Selection } from "../content/selection.ts";
import { type Blocks, NO_BLOCKS } from "../content/states.ts";
import type { Keeper, Readers } from "../request/readers.ts";
import { tooManyRequests } from "../request/refusals.ts";
import { RowsState } from "./row_changes.ts";

export interface FollowedObject<T> {
  readonly key: string;
  readonly held: Held<T> | undefined;
  /** `undefined` if there is none, or none that is selected. */
  readonly object: T | undefined;
}

export type HasRoom = () => boolean | Promise<boolean>;

const IN_HEAD: ReadonlySet<unknown> = new Set(["name", "namespace", "uid", "resourceVersion", "labels"]);

export interface ReadField {
  readonly segments: readonly ScreenSegment[];
  /** The field without which it does not matter. */
  readonly onlyWith?: readonly ScreenSegment[];
}

export interface FollowOptions {
  /** Counts the bytes while they grow; `false` if there is no room for so many. */
  readonly hasRoom: HasRoom;
  /** The objects that are followed; all without a selection. */
  readonly selection: Selection | undefined;
  /** The only fields that are read of the objects; `undefined`: any. */
  readonly reads: readonly ReadField[] | undefined;
}

// A batch is few enough for one turn.
const BATCH = 1_024;
const PUT_UNITS = 100;
const CUT_UNITS = 200;
// Putting some hundred keys in order takes a third of this: first rows are written meanwhile.
const SETTLE_UNITS = 20_000;
// Following the change of an object: its place is searched for, and the blocks around it are copied.
const CHANGE_UNITS = 400;
// After that, content that changes as fast as it is read is read in one turn.
const MOST_TRIES = 3;

// The fewest and the most entries that are read in one step; each costs some microseconds.
const LEAST_UNREAD = 512;
const MOST_UNREAD = 2_048;
// While more follow one content, none reads along: together they would take the turn of the event.
const MOST_ALONG = 16;

/** Follows the selected objects of one content, and makes rows of values of them. */
export abstract class FollowedObjects<T extends KubernetesObject, V = unknown> {
  protected readonly content: Content<T>;
  /** The values, by their places. */
  protected blocks: Blocks<V> = NO_BLOCKS;
  #state: RowsState<V> | undefined;
  readonly #hasRoom: HasRoom;
  readonly #selection: Selection | undefined;
  /** Cuts what is read of an object out of its text, so that the rest of it is not looked at. */
  readonly #cut: FieldCut | undefined;
  /** The cut of objects with a decisive field: fields outside of `#cut` matter for them, too. */
  readonly #wholeCut: FieldCut | undefined;
  readonly #decisive: readonly (readonly ScreenSegment[])[];
  readonly #readsHead: boolean;
  /** The next entry to read; `undefined` before the first reading. */
  #next: number | undefined;
  #rewrites = 0;
  #reading: Promise<void> | undefined;
  /** The readers for whom all objects are being read. */
  readonly #waiting = new Set<Pacer>();
  #spentUnits = 0;
  windows = 0;

  constructor(content: Content<T>, { hasRoom, selection, reads }: FollowOptions) {
    this.content = content;
    this.#hasRoom = hasRoom;
    this.#selection = selection;
    // A test of fields needs the object.
    const fields = selection?.hasFields === undefined ? reads : undefined;
    this.#decisive = fields?.flatMap(({ onlyWith }) => onlyWith ? [onlyWith] : []) ?? [];
    const always = fields?.map(({ segments, onlyWith }) => ({ segments: onlyWith ?? segments }));
    const paths = always && cutPaths(always);
    this.#readsHead = paths?.every(([first, second]) => first === "metadata" && IN_HEAD.has(second)) === true;
    this.#cut = paths && new FieldCut(paths);
    this.#wholeCut = fields && this.#decisive.length > 0 ? new FieldCut(cutPaths(fields)) : undefined;
  }

  /** How many bytes they take, about. */
  abstract get bytes(): number;

  /** There are no objects any more, and no blocks. */
  protected abstract clear(): void;

  /** Takes in some of all objects, each once, until they {@linkcode FollowedObjects.settle}. */
  protected abstract read(objects: readonly FollowedObject<T>[]): void;

  /**
   * All objects were read, as they were at a resourceVersion, or in parts of another history: what is left to
   * do, step by step.
   */
  protected abstract settle(resourceVersion: string | undefined): Iterable<undefined>;

  /** Takes in objects that are new or have changed. */
  protected abstract put(objects: Iterable<FollowedObject<T>>): void;

  /** Whether all objects must be read before it can be. */
  get isBehind(): boolean {
    const { tail, rewrites } = this.content.log.window;
    return this.#next === undefined || this.#next < tail || this.#rewrites !== rewrites;
  }

  get isReading(): boolean {
    return this.#reading !== undefined;
  }

  /** Settles once what is being read was read, or could not be; `undefined` if nothing is. */
  get whileReading(): Promise<unknown> | undefined {
    return this.#reading?.catch(() => {});
  }

  /** All rows, as they are now; {@linkcode FollowedObjects.ready} must be done. */
  present(): RowsState<V> {
    this.catchUp();
    const { resourceVersion } = this.content.log.window;
    if (!this.#state?.isOf(this.blocks, resourceVersion)) {
      this.#state = new RowsState(this.blocks, resourceVersion);
    }
    return this.#state;
  }

  /** The work of following changes since the last call. */
  takeUnits(): number {
    const units = this.#spentUnits;
    this.#spentUnits = 0;
    return units;
  }

  /**
   * Reads all objects, where it must, in turns; `undefined` if it need not. Where no window shows them, and
   * all its callers have left, it ends before, and they are still behind.
   *
   * @throws {StatusError} There is no room for them: 429.
   * @throws {Error} The client of the pacer has left.
   */
  ready(pacer: Pacer): Promise<void> | undefined {
    if (!this.isBehind && this.#reading === undefined) return undefined;
    if (this.windows === 0 && pacer.hasLeft) throw new Error("the client has left");
    this.#waiting.add(pacer);
    return this.#reading ??= this.#readAll(pacer).finally(() => {
      this.#reading = undefined;
      this.#waiting.clear();
    });
  }

  /** The log has grown: reads some entries at a time, so that none is dropped that it has not read. */
  grown(): void {
    const { log: { head, along } } = this.content;
    if (along.size > MOST_ALONG || this.isBehind) return;
    const unread = head - this.#next!;
    // More entries came at once: they are read in turns, for the next reader.
    if (unread < LEAST_UNREAD || unread > MOST_UNREAD) return;
    try {
      this.catchUp();
    } catch {
      // All is read again for the next reader, who receives why that is not possible.
    }
  }

  protected catchUp(): void {
    const { tail, entries } = this.content.log.window;
    if (this.#next === tail + entries.length) return;
    const latest = new Map<string, Held<T> | undefined>();
    for (let i = this.#next! - tail; i < entries.length; i++) {
      const { type, key, object } = entries.at(i)!;
      if (type !== "BOOKMARK") latest.set(key, type === "DELETED" ? undefined : object);
    }
    this.#next = undefined; // where one of them cannot be read, some are put: all is read again
    if (latest.size > 0) this.put(this.#followed(latest));
    this.#spentUnits += latest.size * (CHANGE_UNITS + this.#lookUnits);
    this.#next = tail + entries.length;
  }

  /** An object in a held form, for a look at it; `undefined` if it is not selected. */
  protected selected(key: string, held: Held<T>): T | undefined {
    const selection = this.#selection;
    if (selection?.mayHave(key) === false || selection?.hasHead?.(held) === false) return undefined;
    const { holding } = this.content;
    if (this.#readsHead) return holding.head(held) as unknown as T;
    const cut = this.#cut && holding.cut(held, this.#cut) as T | undefined;
    if (cut !== undefined) {
      const isWhole = !this.#decisive.some((segments) => someValue(cut, segments, () => true));
      return isWhole ? cut : holding.cut(held, this.#wholeCut!) as T;
    }
    const object = holding.peek(held);
    return selection?.hasFields?.(object) === false ? undefined : object;
  }

  /** The cost of looking at an object. */
  get #lookUnits(): number {
    return (this.#cut === undefined ? OPEN_UNITS : CUT_UNITS) + (this.#selection?.units ?? 0);
  }

  *#followed(latest: ReadonlyMap<string, Held<T> | undefined>): Generator<FollowedObject<T>, void> {
    for (const [key, held] of latest) {
      yield { key, held, object: held === undefined ? undefined : this.selected(key, held) };
    }
  }

  /** Whether the clients of all callers have left; what was read is dropped then. */
  #isLeft(): boolean {
    if (this.windows > 0) return false;
    for (const { hasLeft } of this.#waiting) if (!hasLeft) return false;
    this.blocks = NO_BLOCKS;
    this.clear();
    this.#next = undefined;
    return true;
  }

  async #readAll(pacer: Pacer): Promise<void> {
    const { log, states } = this.content;
    const selection = this.#selection;
    const units = PUT_UNITS + this.#lookUnits;
    for (let tries = 1; this.isBehind; tries++) {
      const { head, resourceVersion, window: { rewrites } } = log;
      const now = states.candidates(selection?.indexed);
      this.blocks = NO_BLOCKS;
      this.clear();
      for (let i = 0; i < now.length;) {
        const batch: FollowedObject<T>[] = [];
        for (const end = Math.min(i + BATCH, now.length); i < end; i++) {
          const key = now.key(i);
          const held = now.object(i);
          const object = this.selected(key, held);
          if (object !== undefined) batch.push({ key, held, object });
        }
        this.read(batch);
        const hasRoom = this.#hasRoom();
        if (hasRoom !== true && !await hasRoom) {
          this.clear();
          throw new StatusError(tooManyRequests());
        }
        if (!pacer.spend(units * BATCH) || tries > MOST_TRIES) continue;
        await pacer.rest();
        if (this.#isLeft()) return;
      }
      const isOne = log.window.rewrites === rewrites;
      for (const _ of this.settle(isOne ? resourceVersion : undefined)) {
        pacer.spend(SETTLE_UNITS);
        if (!pacer.isDue || tries > MOST_TRIES) continue;
        await pacer.rest();
        if (this.#isLeft()) return;
      }
      this.#next = head;
      this.#rewrites = rewrites;
    }
  }
}

interface Kept {
  readonly followed: FollowedObjects<KubernetesObject>;
  readonly name: string;
  readonly content: Content<KubernetesObject>;
  usedMs: number;
  bytes: number;
  /** The client whose window was the first of those that show it. */
  client: string | undefined;
}

// A reader turns a page within a minute, and comes back to a screen within a quarter of an hour.
const IDLE_MS = 60_000;
const LONG_IDLE_MS = 15 * 60_000;
// Each of these follows every change of its content, which takes some microseconds; a search has one reader.
const MOST_LONG_IDLE = 4;
const MOST_IDLE = 64;

/**
 * Keeps what follows the objects of all contents: while windows show it, and for a while after it was last
 * read. The least recently used is dropped for the sake of readers when all bytes are spent, and what is read
 * then is refused; but one may be larger than the room for it, or no order of very many objects could be
 * read. It needs no timer: unused rows are dropped at the next request, whatever that is for.
 */
export class KeptFollowers implements Keeper {
  readonly #readers: Readers;
  readonly #clock: Clock;
  readonly #byContent = new WeakMap<Content<KubernetesObject>, Map<string, Kept>>();
  /** The least recently used first. */
  readonly kept: Set<Kept> = new Set();
  /** The only one that has more than there was room for. */
  #large: Kept | undefined;
  /** The objects that wait for room; none waits for them. */
  readonly #waiting = new Set<Kept>();
  /** The bytes of the rows that windows hold, by the client that has opened them. */
  readonly #rowBytes = new Map<string | undefined, number>();

  constructor({ readers, clock }: { readonly readers: Readers; readonly clock: Clock }) {
    this.#readers = readers;
    this.#clock = clock;
    readers.addKeeper(this);
  }

  /** Returns the followed objects under a name, which it makes and keeps if they are not there. */
  get<F extends FollowedObjects<KubernetesObject>>(
    content: Content<KubernetesObject>,
    { name, selection, make }: {
      readonly name: string;
      readonly selection: Selection | undefined;
      readonly make: (hasRoom: HasRoom) => F;
    },
  ): F {
    const ofContent = getOrMake(this.#byContent, content, () => new Map<string, Kept>());
    const fullName = sharedName(name, selection);
    let kept = ofContent.get(fullName);
    if (kept === undefined) {
      const made: Kept = kept = {
        followed: make(() => this.#hasRoom(made)),
        name: fullName,
        content,
        usedMs: 0,
        bytes: 0,
        client: undefined,
      };
      ofContent.set(fullName, made);
      content.log.along.add(kept.followed);
    }
    kept.usedMs = monotonicNow(this.#clock);
    this.kept.delete(kept);
    this.kept.add(kept);
    this.#count(kept);
    return kept.followed as F;
  }

  /**
   * Whether a client may open a window of such rows, which are not dropped then. As of watches, a client may
   * have as much as is still free; but its first rows may be larger.
   */
  mayShow(followed: FollowedObjects<KubernetesObject>, client: string | undefined): boolean {
    for (const kept of this.kept) {
      if (kept.followed !== followed) continue;
      if (followed.windows > 0) return true;
      kept.client = client;
      let ownBytes = 0;
      for (const { followed, bytes, client: of } of this.kept) {
        if (followed.windows > 0 && of === client) ownBytes += bytes;
      }
      return client === undefined || this.#isFree(ownBytes, followed.bytes);
    }
    return false; // it was dropped meanwhile
  }

  /**
   * Counts what the rows of a client's window take, or give back; `false` if there is no room for more, or
   * for a new window of this client.
   */
  takeRows(
    bytes: number,
    { client, isNew }: { readonly client: string | undefined; isNew: boolean },
  ): boolean {
    const ownBytes = this.#rowBytes.get(client) ?? 0;
    if (bytes <= 0) this.#readers.unkeep(-bytes);
    else if (isNew && client !== undefined && !this.#isFree(ownBytes, bytes)) return false;
    else if (!this.#readers.keep(bytes)) return false;
    if (ownBytes + bytes > 0) this.#rowBytes.set(client, ownBytes + bytes);
    else this.#rowBytes.delete(client);
    return true;
  }

  /** Whether a client that has so many bytes may have more: as many as are free, and its first ones. */
  #isFree(ownBytes: number, bytes: number): boolean {
    let freeBytes = this.#readers.mostBytes;
    for (const ofClient of this.#rowBytes.values()) freeBytes -= ofClient;
    for (const kept of this.kept) if (kept.followed.windows > 0) freeBytes -= kept.bytes;
    return ownBytes === 0 || ownBytes + bytes <= freeBytes;
  }

  dropUnused(): void {
    const nowMs = monotonicNow(this.#clock);
    let unused = 0;
    let unseen = 0;
    for (const kept of Array.from(this.kept).reverse()) {
      this.#count(kept);
      if (isUsed(kept)) {
        kept.usedMs = nowMs;
        continue;
      }
      unseen++;
      if (kept.usedMs <= nowMs - IDLE_MS) unused++;
      const idleMs = unused <= MOST_LONG_IDLE ? LONG_IDLE_MS : IDLE_MS;
      if (kept.usedMs <= nowMs - idleMs || unseen > MOST_IDLE) this.#drop(kept);
    }
  }

  dropSome(): boolean {
    for (const kept of this.kept) {
      if (isUsed(kept) || kept.bytes === 0) continue;
      this.#drop(kept);
      return true;
    }
    return false;
  }

  /** Counts what has come since; once there is room, if there is none: `false`. */
  #count(kept: Kept): boolean {
    const { bytes } = kept.followed;
    const more = bytes - kept.bytes;
    if (more <= 0) this.#readers.unkeep(-more);
    else if (!this.#readers.keep(more)) return false;
    // The rows may have been dropped to make room for themselves.
    if (this.kept.has(kept)) kept.bytes = bytes;
    else this.#readers.unkeep(more);
    return true;
  }

  /** Counts what is read; drops it if there is no room, also once others were read and may be dropped. */
  #hasRoom(kept: Kept): boolean | Promise<boolean> {
    if (this.#count(kept)) return true;
    for (const other of this.kept) {
      const reading = other === kept || this.#waiting.has(other) ? undefined : other.followed.whileReading;
      if (reading === undefined) continue;
      this.#waiting.add(kept);
      return reading.then(() => {
        this.#waiting.delete(kept);
        return this.#hasRoom(kept);
      });
    }
    if (this.#mayBeLarge(kept)) return true;
    this.#drop(kept);
    return false;
  }

  #mayBeLarge(kept: Kept): boolean {
    if (this.#large !== undefined && this.#large !== kept) {
      if (isUsed(this.#large)) return false;
      this.#drop(this.#large);
    }
    this.#large = kept;
    return true;
  }

  #drop(kept: Kept): void {
    this.kept.delete(kept);
    this.#byContent.get(kept.content)!.delete(kept.name);
    kept.content.log.along.delete(kept.followed);
    this.#readers.unkeep(kept.bytes);
    kept.bytes = 0;
    if (this.#large === kept) this.#large = undefined;
  }
}

function isUsed({ followed }: Kept): boolean {
  return followed.windows > 0 || followed.isReading;
}

/** The name of what is shared by all who select the same objects. */
export function sharedName(name: string, selection: Selection | undefined): string {
  return JSON.stringify([name, selection?.name ?? ""]);
}
