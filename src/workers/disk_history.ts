import type { KeptEntry, KeptLog, LogHistory, LogStart } from "../hono/content/log_history.ts";
import { compareResourceVersions } from "../meta/object.ts";
import type { Held } from "../store/holding.ts";
import { TextObject } from "../text/lazy_object.ts";
import { getOrMake } from "../util/collections.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import type { DiskContent } from "./disk_content.ts";
import { readState, rowsOf, type SqlDatabase, type SqlValue, writeState } from "./sql_database.ts";

/** The entries of an event log, as rows. Each is written in the turn in which its change is. */
export class DiskHistory implements LogHistory {
  readonly #sql: SqlDatabase;
  readonly #content: DiskContent;
  readonly #options: DiskHistoryOptions;
  /** An entry could not be written: the rows lead nowhere. */
  #isBroken = false;
  /** The offset of the rows' sequence numbers from the log's: a row's number is never used twice. */
  #offset = 0;
  /** The first row that the log may read; the ones before it are deleted in time. */
  #tail = 0;
  #next: number;
  /** The least number of the next row, so that the rows lead to the content that was saved last. */
  #leadsTo = 0;

  constructor(sql: SqlDatabase, options: DiskHistoryOptions) {
    this.#sql = sql;
    this.#options = options;
    this.#content = options.content;
    const [[next]] = rowsOf(sql, "SELECT coalesce(max(sequence), -1) + 1 FROM listwatch_events");
    this.#next = Math.max(Number(next), readState<KeptState>(sql, LOG)?.first ?? 0);
  }

  get tail(): number {
    return this.#tail;
  }

  restore<T>(
    position: string,
    { capacity, held }: { readonly capacity: number; readonly held: (key: string) => Held<T> | undefined },
  ): KeptLog<T> | undefined {
    const leadTo = this.#options.rowsLeadTo();
    if (leadTo === undefined) return undefined;
    const kept = readState<KeptState>(this.#sql, LOG);
    if (kept === undefined) return undefined;
    const rows = rowsOf(
      this.#sql,
      "SELECT type, position, key, body, old_body, late, gap_after, sequence FROM listwatch_events " +
        "WHERE sequence >= ? ORDER BY sequence DESC LIMIT ?",
      kept.first,
      capacity,
    ).reverse();
    const last = rows.at(-1)?.[1] as string | undefined;
    if (compareResourceVersions(last ?? kept.resumeFrom.position, position) > 0) return undefined;
    // A list begins no earlier than watches may: its changes were not written to their end.
    const listed = rows.findLast((row) => row[6] !== null)?.[1] as string | undefined;
    if (compareResourceVersions(listed ?? "", kept.resumeFrom.position) > 0) return undefined;
    if (this.#next < leadTo) return undefined;
    this.#offset = 0;
    this.#tail = rows.length === 0 ? this.#next : Number(rows[0][7]);
    const objects = new Map<number, Held<T>>();
    const read = (key: string, body: SqlValue): Held<T> | undefined => {
      if (body === null) return undefined;
      const id = Number(body);
      return getOrMake(objects, id, () => {
        const present = held(key);
        const isPresent = present instanceof TextObject && Number(present.text) === id;
        return isPresent ? present : this.#content.read(key, id);
      });
    };
    return {
      tail: this.#tail,
      entries: rows.map((row) => newEntry(row, read)),
      ...this.#before(this.#tail, kept),
      resumeFrom: kept.resumeFrom,
    };
  }

  begin(start: LogStart): void {
    this.#write(() => this.#begin(start));
  }

  append<T>(sequence: number, entry: KeptEntry<T>): void {
    this.#write(() => {
      if (this.#isBroken) this.#begin({ position: entry.position, sequence: sequence + 1 });
      else this.#append(sequence, entry);
    });
  }

  resumeFrom({ position, sequence }: LogStart): void {
    this.#write(() => {
      const kept = readState<KeptState>(this.#sql, LOG);
      const resumeFrom = { position, sequence: sequence + this.#offset };
      if (kept !== undefined) writeState(this.#sql, LOG, { ...kept, resumeFrom });
    });
  }

  /** The first row behind what leads to a content that is saved now. Changes have entries, written next. */
  leadTo({ hasChanged }: { readonly hasChanged: boolean }): number {
    return this.#leadsTo = hasChanged ? this.#next + 1 : this.#next;
  }

  /** If an entry could not be written, the next process has no history. */
  dropBroken(): void {
    if (this.#isBroken) this.#sql.exec("DELETE FROM listwatch_state WHERE name = ?", LOG);
  }

  /** Writes; never throws: the log in memory continues. */
  #write(write: () => void): void {
    try {
      write();
    } catch (error) {
      if (!this.#isBroken) this.#options.logger.error(`${NOT_KEPT}: ${errorMessage(error)}`);
      this.#isBroken = true;
      try {
        this.dropBroken();
      } catch {
        // The next save of content does it, or fails, too.
      }
    }
  }

  #begin({ position, sequence }: LogStart): void {
    // The rows of the past are there still: readers may be reading the texts that they refer to.
    this.#tail = this.#next = Math.max(this.#next, this.#leadsTo);
    this.#offset = this.#tail - sequence;
    const resumeFrom = { position, sequence: this.#tail };
    writeState(this.#sql, LOG, { first: this.#tail, base: position, lastLateEvicted: "", resumeFrom });
    this.#isBroken = false;
  }

  #append<T>(sequence: number, entry: KeptEntry<T>): void {
    const { type, position, key, object, oldObject, isLate, gapAfter } = entry;
    const [body, oldBody] = [this.#idOf(object), this.#idOf(oldObject)];
    this.#content.writeAll();
    this.#sql.exec(
      "INSERT INTO listwatch_events(sequence, type, position, key, body, old_body, late, gap_after) " +
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
      sequence + this.#offset,
      type,
      position,
      key,
      body,
      oldBody,
      isLate ? 1 : 0,
      gapAfter ?? null,
    );
    this.#next = sequence + this.#offset + 1;
  }

  evicted(tail: number): void {
    this.#tail = tail + this.#offset;
  }

  /** Deletes some of the rows before `row`, and the states that they replaced. */
  reclaim(row: number, limit: number): number {
    const rows = rowsOf(
      this.#sql,
      "SELECT key, type, body, old_body, sequence FROM listwatch_events WHERE sequence < ? " +
        "ORDER BY sequence LIMIT ?",
      row,
      limit,
    );
    const last = rows.at(-1);
    if (last === undefined) return 0;
    const next = Number(last[4]) + 1;
    const kept = readState<KeptState>(this.#sql, LOG);
    if (kept !== undefined && kept.first < next) {
      writeState(this.#sql, LOG, { ...kept, ...this.#before(next, kept), first: next });
    }
    for (const [key, type, body, oldBody] of rows) {
      // The state after an addition or an update is present, or the old one of a later row.
      if (oldBody !== null) this.#content.deleteState(key as string, Number(oldBody));
      if (type === "DELETED") this.#content.deleteState(key as string, Number(body));
    }
    this.#sql.exec("DELETE FROM listwatch_events WHERE sequence < ?", next);
    return rows.length;
  }

  /** The state before a row, as far as it is known. */
  #before(row: number, kept: KeptState): Pick<KeptState, "base" | "lastLateEvicted"> {
    const query = (isLate: string) =>
      `SELECT position FROM listwatch_events WHERE sequence >= ? AND sequence < ?${isLate} ORDER BY sequence DESC LIMIT 1`;
    const [before] = rowsOf(this.#sql, query(""), kept.first, row);
    const [late] = rowsOf(this.#sql, query(" AND late = 1"), kept.first, row);
    return {
      base: before?.[0] as string | undefined ?? kept.base,
      lastLateEvicted: late?.[0] as string | undefined ?? kept.lastLateEvicted,
    };
  }

  #idOf(held: unknown): number | null {
    return held === undefined ? null : this.#content.idOf(held, () => JSON.stringify(held));
  }
}

const LOG = "log";
const NOT_KEPT = "An event could not be written: watches will not resume if the object restarts now";

export interface DiskHistoryOptions {
  readonly content: DiskContent;
  readonly logger: Logger;
  /**
   * The value of {@linkcode DiskHistory.leadTo} for the loaded content; `undefined` if rows cannot lead to
   * it.
   */
  rowsLeadTo(): number | undefined;
}

/** State of all rows together. Sequence numbers are those of rows. */
interface KeptState {
  readonly first: number;
  readonly base: string;
  readonly lastLateEvicted: string;
  readonly resumeFrom: LogStart;
}

function newEntry<T>(
  [type, position, key, body, oldBody, late, gapAfter]: readonly SqlValue[],
  read: (key: string, body: SqlValue) => Held<T> | undefined,
): KeptEntry<T> {
  return {
    type: type as KeptEntry<T>["type"],
    position: position as string,
    key: key as string,
    object: read(key as string, body),
    oldObject: read(key as string, oldBody),
    isLate: late === 1,
    gapAfter: gapAfter as string | null ?? undefined,
  };
}
