/**
 * Escapes for text that is shown to people.
 * @module
 */

// Characters that are invisible, move the cursor or change the direction: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0]/gu;

/**
 * Text with escapes for invisible characters and those that change how the rest is shown: control characters,
 * direction marks, zero-width characters, unpaired surrogates. Longer text than `maxLength` is cut and ends
 * with "…".
 */
export function visibleText(text: string, maxLength: number): string {
  // An escape is longer than its character.
  const shown = text.slice(0, maxLength + 1).replace(INVISIBLE, escapeOf);
  if (shown.length <= maxLength && text.length <= maxLength) return shown;
  // Not within a surrogate pair.
  return `${shown.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function escapeOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code < 0x100
    ? `\\x${hex.padStart(2, "0")}`
    : code < 0x10000
    ? `\\u${hex.padStart(4, "0")}`
    : `\\u{${hex}}`;
}
