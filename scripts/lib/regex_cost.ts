/**
 * Whether a regular expression is linear: whether no text can make the
 * engine try it in more ways than the text is long.
 *
 * It is shown for expressions in which every step is decided by the next character: what is repeated without
 * bound and what may follow it begin with different characters, and so do the alternatives of a repeated
 * group. An expression that may begin anywhere must besides not begin with a character that it repeats.
 * Others may be linear too, or be run on short texts only; their use needs a reason.
 *
 * @module
 */

/** A set of characters: the first 256 one by one, and one for all others. */
type CharSet = Uint8Array;
const SIZE = 257;

interface Term {
  readonly atom: Atom;
  readonly min: number;
  readonly max: number;
}

type Sequence = readonly Term[];

type Atom =
  | { readonly type: "set"; readonly set: CharSet }
  | { readonly type: "group"; readonly alternatives: readonly Sequence[] }
  /** `$` ends the text: nothing can follow. `^`, `\b` and looking around take no character. */
  | { readonly type: "end" }
  | { readonly type: "start" }
  | { readonly type: "look"; readonly alternatives: readonly Sequence[] };

class Unsupported extends Error {}

/** Why an expression is not known to be linear; `undefined` if it is. */
export function regexFault(source: string, flags: string): string | undefined {
  let alternatives: readonly Sequence[];
  try {
    alternatives = new Parser(source, flags).parse();
  } catch (error) {
    if (error instanceof Unsupported) return error.message;
    throw error;
  }
  const isSticky = flags.includes("y");
  for (const sequence of alternatives) {
    const fault = faultOf(sequence, newSet(), false);
    if (fault !== undefined) return fault;
    const isAnchored = isSticky || (sequence[0]?.atom.type === "start" && !flags.includes("m"));
    if (isAnchored) continue;
    const first = firstOf(sequence, newSet());
    for (const { repeated, mayFail } of repetitions(sequence, false)) {
      if (mayFail && meets(first, repeated)) {
        return "it may begin anywhere, and repeats a character that it may begin with";
      }
    }
  }
  return undefined;
}

/** What is repeated without bound in a sequence, and whether what follows may fail to match. */
function* repetitions(
  sequence: Sequence,
  mayFail: boolean,
): Generator<{ readonly repeated: CharSet; readonly mayFail: boolean }> {
  for (const [i, { atom, max }] of sequence.entries()) {
    const failsLater = mayFail || sequence.slice(i + 1).some((term) => term.min > 0 && !isNullable(term));
    if (max === Infinity) yield { repeated: charsOf(atom), mayFail: failsLater || atom.type === "group" };
    else if (atom.type === "group") {
      for (const alternative of atom.alternatives) yield* repetitions(alternative, failsLater);
    }
  }
}

/**
 * What makes a sequence ambiguous that is followed by one of some
 * characters; in a loop nothing may be ambiguous.
 */
function faultOf(sequence: Sequence, follow: CharSet, isInLoop: boolean): string | undefined {
  for (const [i, term] of sequence.entries()) {
    const { atom, min, max } = term;
    const next = firstOf(sequence.slice(i + 1), follow);
    const isOpen = max === Infinity;
    const first = firstOfAtom(atom);
    if ((isOpen || (isInLoop && min !== max)) && meets(first, next)) {
      return "the end of the repetition is ambiguous with what follows it";
    }
    if (atom.type === "look" && atom.alternatives.some((alternative) => hasLoop(alternative))) {
      return "it repeats something while it looks around";
    }
    if (atom.type !== "group") continue;
    const inLoop = isInLoop || isOpen;
    if (isOpen && atom.alternatives.some((alternative) => alternative.every(isNullable))) {
      return "it repeats what may be empty";
    }
    const inner = max > 1 ? union(next, first) : next;
    for (const [j, alternative] of atom.alternatives.entries()) {
      const fault = faultOf(alternative, inner, inLoop);
      if (fault !== undefined) return fault;
      const own = firstOf(alternative, inner);
      const others = atom.alternatives.slice(j + 1).map((other) => firstOf(other, inner));
      if (inLoop && others.some((other) => meets(own, other))) {
        return "it repeats alternatives that begin with the same character";
      }
    }
  }
  return undefined;
}

function hasLoop(sequence: Sequence): boolean {
  return sequence.some(({ atom, max }) =>
    max === Infinity || ("alternatives" in atom && atom.alternatives.some(hasLoop))
  );
}

function isNullable({ atom, min }: Term): boolean {
  if (min === 0 || atom.type === "start" || atom.type === "look") return true;
  return atom.type === "group" && atom.alternatives.some((alternative) => alternative.every(isNullable));
}

/** What a sequence that is followed by one of some characters may begin with. */
function firstOf(sequence: Sequence, follow: CharSet): CharSet {
  let set = newSet();
  for (const term of sequence) {
    if (term.atom.type === "end") return set;
    set = union(set, firstOfAtom(term.atom));
    if (!isNullable(term)) return set;
  }
  return union(set, follow);
}

function firstOfAtom(atom: Atom): CharSet {
  if (atom.type === "set") return atom.set;
  if (atom.type !== "group") return newSet();
  return atom.alternatives.map((alternative) => firstOf(alternative, newSet())).reduce(union, newSet());
}

/** Every character that an atom may take. */
function charsOf(atom: Atom): CharSet {
  if (atom.type === "set") return atom.set;
  if (atom.type !== "group") return newSet();
  return atom.alternatives.flat().map((term) => charsOf(term.atom)).reduce(union, newSet());
}

function newSet(): CharSet {
  return new Uint8Array(SIZE);
}

function union(a: CharSet, b: CharSet): CharSet {
  return a.map((value, i) => value | b[i]);
}

function meets(a: CharSet, b: CharSet): boolean {
  return a.some((value, i) => value === 1 && b[i] === 1);
}

const CLASSES: Readonly<Record<string, RegExp>> = {
  d: /[0-9]/,
  w: /\w/,
  s: /\s/,
};

class Parser {
  readonly #source: string;
  readonly #isCaseless: boolean;
  readonly #dotAll: boolean;
  #at = 0;
  #isInNegated = false;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#isCaseless = flags.includes("i");
    this.#dotAll = flags.includes("s");
  }

  parse(): Sequence[] {
    const alternatives = this.#alternatives();
    if (this.#at < this.#source.length) throw new Unsupported("its syntax is not known here");
    return alternatives;
  }

  #alternatives(): Sequence[] {
    const alternatives: Sequence[] = [];
    for (;;) {
      alternatives.push(this.#sequence());
      if (this.#source[this.#at] !== "|") return alternatives;
      this.#at++;
    }
  }

  #sequence(): Sequence {
    const terms: Term[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at])) {
      const atom = this.#atom();
      terms.push({ atom, ...this.#quantifier() });
    }
    return terms;
  }

  #quantifier(): { min: number; max: number } {
    const rest = this.#source.slice(this.#at);
    const match = /^(?:([*+?])|\{([0-9]+)(?:(,)([0-9]*))?\})\??/.exec(rest);
    if (match === null) return { min: 1, max: 1 };
    this.#at += match[0].length;
    const [, sign, least, comma, most] = match;
    if (sign !== undefined) return { min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity };
    const min = Number(least);
    return { min, max: comma === undefined ? min : most === "" ? Infinity : Number(most) };
  }

  #atom(): Atom {
    const char = this.#source[this.#at++];
    switch (char) {
      case "^":
        return { type: "start" };
      case "$":
        return { type: "end" };
      case ".":
        return this.#set((code) => this.#dotAll || (code !== 10 && code !== 13), true);
      case "[":
        return { type: "set", set: this.#class() };
      case "(":
        return this.#group();
      case "\\": {
        const escaped = this.#source[this.#at];
        if (escaped === "b" || escaped === "B") {
          this.#at++;
          return { type: "start" };
        }
        return { type: "set", set: this.#escape() };
      }
    }
    return { type: "set", set: this.#char(char.charCodeAt(0)) };
  }

  #group(): Atom {
    const kind = /^\?(?:<?[=!]|:|<[A-Za-z]\w*>)/.exec(this.#source.slice(this.#at))?.[0] ?? "";
    this.#at += kind.length;
    const alternatives = this.#alternatives();
    if (this.#source[this.#at++] !== ")") throw new Unsupported("its syntax is not known here");
    return { type: /[=!]/.test(kind) ? "look" : "group", alternatives };
  }

  // After the backslash.
  #escape(): CharSet {
    const char = this.#source[this.#at++];
    const known = CLASSES[char.toLowerCase()];
    if (known !== undefined) {
      const isNegated = char !== char.toLowerCase();
      return this.#setOf((code) => known.test(String.fromCharCode(code)) !== isNegated, isNegated);
    }
    const control = "0tnvfr".indexOf(char);
    if (control >= 0) return this.#char([0, 9, 10, 11, 12, 13][control]);
    if (char === "x" || char === "u") {
      const hex = /^(?:[0-9a-fA-F]{2,4}|\{[0-9a-fA-F]+\})/.exec(
        this.#source.slice(this.#at, this.#at + (char === "x" ? 2 : 12)),
      )?.[0];
      if (hex === undefined) throw new Unsupported("its syntax is not known here");
      this.#at += hex.length;
      return this.#char(parseInt(hex.replace(/[{}]/g, ""), 16));
    }
    // A class of Unicode: any character, to be safe.
    const property = /^\{[^}]+\}/.exec(this.#source.slice(this.#at))?.[0];
    if (/p/i.test(char) && property !== undefined && !this.#isInNegated) {
      this.#at += property.length;
      return this.#setOf(() => true, true);
    }
    if (/[1-9kpP]/.test(char)) throw new Unsupported("it refers back, or to a class that is not known here");
    return this.#char(char.charCodeAt(0));
  }

  // After the opening bracket.
  #class(): CharSet {
    const isNegated = this.#source[this.#at] === "^";
    if (isNegated) this.#at++;
    this.#isInNegated = isNegated;
    let set = newSet();
    while (this.#source[this.#at] !== "]") {
      if (this.#at >= this.#source.length) throw new Unsupported("its syntax is not known here");
      const low = this.#classMember();
      const isRange = this.#source[this.#at] === "-" && this.#source[this.#at + 1] !== "]" &&
        low.code !== undefined;
      if (!isRange) {
        set = union(set, low.set);
        continue;
      }
      this.#at++;
      const high = this.#classMember();
      const [from, to] = [low.code ?? 0, high.code ?? 0];
      set = union(set, this.#setOf((code) => code >= from && code <= to, to > 255));
    }
    this.#at++;
    this.#isInNegated = false;
    return isNegated ? set.map((value) => 1 - value) : set;
  }

  #classMember(): { readonly set: CharSet; readonly code?: number } {
    const char = this.#source[this.#at++];
    if (char !== "\\") return { set: this.#char(char.charCodeAt(0)), code: char.charCodeAt(0) };
    if (this.#source[this.#at] === "b") {
      this.#at++;
      return { set: this.#char(8), code: 8 };
    }
    const start = this.#at;
    const set = this.#escape();
    const text = this.#source.slice(start, this.#at);
    if (/^[dwsDWS]/.test(text)) return { set };
    const code = /^[xu]/.test(text) ? parseInt(text.slice(1).replace(/[{}]/g, ""), 16) : set.indexOf(1);
    return { set, code };
  }

  #set(has: (code: number) => boolean, others: boolean): Atom {
    return { type: "set", set: this.#setOf(has, others) };
  }

  #setOf(has: (code: number) => boolean, others: boolean): CharSet {
    const set = newSet();
    for (let code = 0; code < SIZE - 1; code++) set[code] = has(code) ? 1 : 0;
    if (this.#isCaseless) {
      for (let code = 65; code <= 90; code++) set[code] = set[code + 32] = set[code] | set[code + 32];
    }
    set[SIZE - 1] = others ? 1 : 0;
    return set;
  }

  #char(code: number): CharSet {
    return this.#setOf((each) => each === code, code > 255);
  }
}
