/** Texts for people: numbers, times, and names with all that is in them. */

import { humanDuration } from "../../../hono/tables/human_duration.ts";

/** A space that keeps the height of a line without text. */
export const NO_TEXT = "\u00a0";

/** `12,000`. */
export function number(value: number): string {
  return value.toLocaleString("en");
}

/** `1 pod`, `2 pods`. */
export function plural(count: number, one: string, many: string): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** `1 pod`, `2 pods`, `2 widgets.shop.example.com`: the objects of a resource. */
export function objectsText(
  count: number,
  { name, kind }: { readonly name: string; readonly kind: string },
): string {
  return plural(count, kind.toLowerCase(), name);
}

/** `now`, `3 s`, `2 min`. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 1) return "now";
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

/** `just now`, `3 s ago`. */
export function ago(ms: number): string {
  const text = duration(ms);
  return text === "now" ? "just now" : `${text} ago`;
}

/** `5s`, `3m`, `2h`, `4d`, as kubectl prints ages. */
export function age(ms: number): string {
  return humanDuration(Math.max(0, Math.floor(ms / 1_000)));
}

const SECONDS: Readonly<Record<string, number>> = { y: 31_536_000, d: 86_400, h: 3_600, m: 60, s: 1 };

/** A duration as kubectl prints it, also that in `5 (2d ago)`, so much later. */
export function later(text: string, ms: number): string {
  const parts = /^([0-9]{1,9} \()?([0-9][0-9ydhms]{0,19}[ydhms])( ago\))?$/.exec(text);
  if (ms < 1_000 || parts === null || (parts[1] === undefined) !== (parts[3] === undefined)) return text;
  const [, before = "", duration, after = ""] = parts;
  let [seconds, count] = [0, 0];
  for (const character of duration) {
    if (Object.hasOwn(SECONDS, character)) [seconds, count] = [seconds + count * SECONDS[character], 0];
    else count = count * 10 + Number(character);
  }
  return before + age(seconds * 1_000 + ms) + after;
}

/**
 * The text of a column `Age`, so much later than its cell was made: the age of the object if the cell had
 * that, and else, as custom resources may have another time there, as much more than the cell.
 */
export function ageLater(text: string, ageMs: number, ms: number): string {
  return text === age(ageMs - ms) ? age(ageMs) : later(text, ms);
}

/** A text with its invisible characters escaped. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu,
    (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`,
  );
}
