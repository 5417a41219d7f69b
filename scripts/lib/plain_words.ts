/**
 * The words that no text of the project uses, and what to write instead: readers know English as a second
 * language, and one thing has one word (the glossary of CONTRIBUTING.md).
 *
 * @module
 */

/** One phrase to avoid. */
export interface AvoidedPhrase {
  /** A regular expression without flags; a space in it matches a line break too, and case counts. */
  readonly phrase: string;
  readonly instead: string;
}

/** What is looked for. To allow one use, make the phrase more precise rather than the text worse. */
export const AVOIDED: readonly AvoidedPhrase[] = [
  {
    phrase: "[Tt]old|[Tt]ells?|[Tt]elling",
    instead: "notify, report, print, say, show; `distinguish` for telling apart",
  },
  { phrase: "[Hh]ears?|[Hh]eard|[Hh]earing", instead: "receive, notice, contact" },
  {
    phrase: "[Nn]obody|[Aa]nybody|[Ss]omebody|[Ee]verybody",
    instead: "name the reader, caller, server ... or `nothing`",
  },
  {
    phrase: "[Ww]hoever|[Ff]or those who|[Tt]hose who",
    instead: "name it: the caller, the reader, handlers that",
  },
  {
    phrase: "(?:[Ww]ho|those that) (?:asks?|listens?|needs?|wants?|waits?|reads?|looks?)",
    instead: "the caller, the reader, the listener",
  },
  { phrase: "[Ww]ithout a word", instead: "by default, silently" },
  { phrase: "(?:go|goes|going|went|gone) on", instead: "continue" },
  { phrase: "gone", instead: "deleted, removed, no longer there (`Gone` is the HTTP reason)" },
  { phrase: "stands?(?! for| in(?!to)|-)|stood", instead: "is, is written, is at" },
  { phrase: "anew|begun", instead: "again; started" },
  { phrase: "(?:is|are|was|were|be|been|what|not) (?:not )?met(?: by)?", instead: "found, does not happen" },
  { phrase: "[Ss]tep(?:s|ped|ping)? over", instead: "skip" },
  { phrase: "[Ss]et(?:s|ting)? aside", instead: "quarantine (an object, an event), skip" },
  { phrase: "[Ww]ork(?:s|ed|ing)? off", instead: "process, drain" },
  { phrase: "(?:is|are|was|were) forgotten", instead: "drop, remove, compact" },
  { phrase: "gaits?", instead: "bimodal" },
  { phrase: "(?:not )?let in(?!to)", instead: "accept, admit; refuse" },
  {
    phrase: "[Nn]ow and then|[Bb]y and by|[Ee]ver more|[Ii]n vain",
    instead: "occasionally; increasingly; without effect",
  },
  { phrase: "in one piece", instead: "as one unit" },
  { phrase: "for good", instead: "permanently" },
  { phrase: "[Ll]est", instead: "so that ... not" },
  { phrase: "let go", instead: "disconnect, end, release, remove" },
  { phrase: "if need be|than need be|all the same", instead: "if necessary; nevertheless" },
  { phrase: "ma(?:kes?|de|king) up for", instead: "compensate, repair, replace" },
  { phrase: "bec(?:omes|ame) of", instead: "the result, the fate, how ... is handled" },
  { phrase: "(?:is|are|was|were|be|been) asked", instead: "called, queried, requested" },
  { phrase: "clear yes", instead: "exactly `true`" },
  { phrase: "what (?:it|one|he|she) is at|what goes", instead: "its phase, its state" },
  { phrase: "what (?:there was|was (?:before|there|is|are))", instead: "the earlier state, the history" },
  { phrase: "[Bb]efall\\w*|vouch\\w*|thereby|henceforth|hitherto|thereof", instead: "plain words" },
  { phrase: "refused objects?|rejected objects?|INVALID objects?", instead: "quarantined object" },
];

/** A phrase that a text has, and where. */
export interface AvoidedUse {
  /** 1-based. */
  readonly line: number;
  readonly phrase: string;
  readonly instead: string;
}

const MATCHERS = AVOIDED.map(({ phrase, instead }) => ({
  // No letter, digit or `_` beside it, nor a `.` or `(` that makes it a name in code.
  pattern: new RegExp(`(?<![\\w$.#-])(?:${phrase.replaceAll(" ", "\\s+")})(?![\\w$(]|\\??:)`, "g"),
  instead,
}));

/**
 * What joins the lines of a comment or a quotation: spaces of the
 * same length take its place, so that offsets stay.
 */
const LINE_JOINT = /\n[ \t]*(?:\*(?!\/)|\/\/+|>)?[ \t]*/g;

/** All uses of {@linkcode AVOIDED} in a text, in the order of the table. */
export function avoidedUses(text: string): AvoidedUse[] {
  const joined = text.replace(LINE_JOINT, (joint) => " ".repeat(joint.length));
  const uses: AvoidedUse[] = [];
  for (const { pattern, instead } of MATCHERS) {
    for (const match of joined.matchAll(pattern)) {
      const line = text.slice(0, match.index).split("\n").length;
      uses.push({ line, phrase: match[0].replace(/\s+/g, " "), instead });
    }
  }
  return uses;
}
