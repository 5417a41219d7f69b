/**
 * Shortens JSON texts and restores them, exactly: repetitions become references to earlier parts of the text,
 * and to a vocabulary that is learned from the first texts that resembled nothing known. The vocabulary only
 * grows, up to 64 KB, so what was shortened before can be restored, by the codec that made it.
 *
 * The text is worked on as UTF-8, of which a short form has each byte as a character: a string of one byte a
 * character in every engine. Control characters and halves of surrogate pairs are written as an escape that
 * JSON does not have (`\x` and four digits), so the 32 characters below 0x20 are free for references: so many
 * bytes as those so far back, in the text or, further back, in the vocabulary before it. 16-31 begin one with
 * a distance, 0-15 one with the distance of the one before: past whatever differed the same text continues.
 * The low four bits are the length, with the rest of it behind if they are all set; then comes the distance.
 * Both are written in sixes of bits, lowest first, 0x40 set where more follow.
 */
export class TextCodec {
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The vocabulary, filled from its end to its beginning, and behind it the text that is worked on. */
  #bytes = new Uint8Array(VOCABULARY + 4096);
  #words = new DataView(this.#bytes.buffer);
  #short = new Uint8Array(4096);
  #unused = VOCABULARY;
  // The places where the same characters were seen last, by their hash; those in the text are counted from
  // its beginning. Both are guesses.
  readonly #inVocabulary = new Uint16Array(1 << 14);
  readonly #inText = new Uint16Array(1 << 12);

  /** Shortens a JSON text, which must be one: `\x` is in none. */
  encode(text: string): string {
    let json = text.isWellFormed() ? text : escaped(text);
    let length = this.#write(json);
    let shortened = this.#shorten(VOCABULARY + length);
    if (shortened < 0) {
      length = this.#write(json = escaped(text));
      shortened = this.#shorten(VOCABULARY + length);
    }
    if (shortened > length * UNFAMILIAR && length <= MAX_LEARNED && length <= this.#unused) {
      this.#learn(length);
      shortened = this.#shorten(VOCABULARY + length); // now it is one reference
    }
    const short = this.#short.subarray(0, shortened);
    return length === json.length ? this.#decoder.decode(short) : charactersOf(short);
  }

  /** Puts a text behind the vocabulary; returns how many bytes it takes. */
  #write(json: string): number {
    this.#makeRoom(VOCABULARY + json.length);
    let { read, written } = this.#encoder.encodeInto(json, this.#bytes.subarray(VOCABULARY));
    if (read < json.length) {
      this.#makeRoom(VOCABULARY + MOST_BYTES * json.length);
      ({ read, written } = this.#encoder.encodeInto(json, this.#bytes.subarray(VOCABULARY)));
    }
    return written;
  }

  /** Restores the text that was shortened. */
  decode(short: string): string {
    let words = this.#words;
    let at = VOCABULARY;
    let distance = 1;
    let next = 0;
    const number = () => {
      let value = 0;
      for (let unit = 1;; unit *= 64) {
        const six = short.charCodeAt(next++);
        value += (six & 63) * unit;
        if (six < 64) return value;
      }
    };
    while (next < short.length) {
      const code = short.charCodeAt(next++);
      let length = 1;
      if (code < 32) {
        length = (code & 15) + (code < 16 ? MIN_AGAIN : MIN_NEW);
        if ((code & 15) === 15) length += number();
        if (code >= 16) distance = number();
      }
      const end = at + length;
      if (end + 4 > words.byteLength) words = this.#makeRoom(end + 4);
      // Below a distance of 4, one byte of each write counts; bytes past the end are overwritten.
      const step = distance < 4 ? 1 : 4;
      if (code >= 32) words.setUint8(at, code);
      else for (; at < end; at += step) words.setInt32(at, words.getInt32(at - distance, true), true);
      at = end;
    }
    const json = this.#decoder.decode(this.#bytes.subarray(VOCABULARY, at));
    return json.includes("\\x") ? unescaped(json) : json;
  }

  #makeRoom(end: number): DataView<ArrayBuffer> {
    if (end > this.#bytes.length) {
      const bytes = new Uint8Array(end + (end - VOCABULARY));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
      this.#words = new DataView(bytes.buffer);
      this.#short = new Uint8Array(bytes.length - VOCABULARY);
    }
    return this.#words;
  }

  /**
   * Shortens the text that ends at `end` into `#short`; returns the number of bytes, which is never more; -1
   * if the text has a control character.
   */
  #shorten(end: number): number {
    const bytes = this.#bytes;
    const words = this.#words;
    const short = this.#short;
    const inVocabulary = this.#inVocabulary;
    const inText = this.#inText.fill(0);
    const lastNew = end - MIN_NEW;
    let at = VOCABULARY;
    let distance = 1;
    let written = 0;
    /** How many of the last written bytes are no references. */
    let plain = 0;
    while (at < end) {
      let length = commonLength(bytes, words, at - distance, at, end);
      if (length >= MIN_AGAIN) {
        const before = commonBefore(bytes, at - distance, at, plain);
        written = writeLength(short, written - before, 0, before + length - MIN_AGAIN);
        plain = 0;
        at += length;
        continue;
      }
      if (at <= lastNew) {
        const hash = hashAt(words, at);
        let place = inVocabulary[hash >>> 18];
        length = commonLength(bytes, words, place, at, end);
        const placeInText = VOCABULARY + inText[hash >>> 20];
        inText[hash >>> 20] = at - VOCABULARY;
        const lengthInText = placeInText < at ? commonLength(bytes, words, placeInText, at, end) : 0;
        if (lengthInText > length) {
          length = lengthInText;
          place = placeInText;
        }
        if (length >= MIN_NEW) {
          distance = at - place;
          const before = commonBefore(bytes, place, at, plain);
          written = writeLength(short, written - before, 16, before + length - MIN_NEW);
          written = writeNumber(short, written, distance);
          plain = 0;
          at += length;
          continue;
        }
      }
      // Behind many that are new most are.
      for (let i = plain < MANY ? 1 : 2; i > 0 && at < end; i--) {
        const code = bytes[at++];
        if (code < 32) return -1;
        short[written++] = code;
        plain++;
      }
    }
    return written;
  }

  #learn(length: number): void {
    const end = this.#unused;
    this.#unused -= length;
    this.#bytes.copyWithin(this.#unused, VOCABULARY, VOCABULARY + length);
    for (let at = this.#unused; at + MIN_NEW <= end; at++) {
      this.#inVocabulary[hashAt(this.#words, at) >>> 18] = at;
    }
  }
}

// Control characters, and surrogates without their other half.
// deno-lint-ignore no-control-regex -- their codes are those of references
const ESCAPED = /[\0-\x1f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** Every escape as a whole, as a backslash may be escaped itself. */
const ESCAPE = /\\(?:x([0-9a-f]{4})|.)/g;

function escaped(text: string): string {
  return text.replace(ESCAPED, (unit) => "\\x" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
}

function unescaped(json: string): string {
  return json.replace(ESCAPE, (escape, code) => code ? String.fromCharCode(parseInt(code, 16)) : escape);
}

/** A character of one byte for each byte. */
function charactersOf(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += MOST_ARGUMENTS) {
    text += String.fromCharCode(...bytes.subarray(i, i + MOST_ARGUMENTS));
  }
  return text;
}

/** How many arguments a call takes in every engine. */
const MOST_ARGUMENTS = 8_192;

/** The most UTF-8 bytes of one UTF-16 unit. */
const MOST_BYTES = 3;
const VOCABULARY = 1 << 16;
/** The longest text that is learned: none takes more than this part of the vocabulary. */
const MAX_LEARNED = VOCABULARY / 4;
/** A text is learned if its short form is more than this part of it. */
const UNFAMILIAR = 0.3;
/** The shortest reference that is worthwhile, without a distance of its own and with one. */
const MIN_AGAIN = 3;
const MIN_NEW = 6;
/** After so many bytes that were new, every second one is looked up. */
const MANY = 8;

/** How many bytes from `place` on equal those from `at` on, up to `end`. */
function commonLength(bytes: Uint8Array, words: DataView, place: number, at: number, end: number): number {
  if (bytes[place] !== bytes[at]) return 0;
  let i = at;
  let k = place;
  // No eight bytes of UTF-8 without control characters are a number that equals another, or not itself.
  for (const last = end - 8; i <= last && words.getFloat64(i, true) === words.getFloat64(k, true); i += 8) {
    k += 8;
  }
  while (i < end && bytes[i] === bytes[k]) {
    i++;
    k++;
  }
  return i - at;
}

/** How many bytes before `place` equal those before `at`; at most `most`. */
function commonBefore(bytes: Uint8Array, place: number, at: number, most: number): number {
  let length = 0;
  while (length < most && bytes[at - length - 1] === bytes[place - length - 1]) length++;
  return length;
}

/** Writes the beginning of a reference; returns where the next byte comes. */
function writeLength(short: Uint8Array, written: number, kind: number, length: number): number {
  if (length < 15) {
    short[written] = kind + length;
    return written + 1;
  }
  short[written] = kind + 15;
  return writeNumber(short, written + 1, length - 15);
}

function writeNumber(short: Uint8Array, written: number, number: number): number {
  let value = number;
  for (; value > 63; value >>>= 6) short[written++] = 64 | (value & 63);
  short[written] = value;
  return written + 1;
}

/** The hash of MIN_NEW bytes. */
function hashAt(words: DataView, at: number): number {
  const last = Math.imul(words.getUint16(at + 4, true), 0x85ebca6b);
  return Math.imul(words.getInt32(at, true) ^ last, 0x9e3779b1) >>> 0;
}
