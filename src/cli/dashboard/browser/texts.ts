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

/** A text with its invisible characters escaped. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu,
    (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`,
  );
}
