/** CRC-32, as zlib computes it. */

/** The checksum of some bytes; `before` is that of the bytes before them. */
export type Checksum = (bytes: Uint8Array, before?: number) => number;

/** CRC-32 in JavaScript, eight bytes at a time, for runtimes without `zlib.crc32`. */
export const crc32: Checksum = (bytes, before = 0) => {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES;
  let crc = ~before;
  let at = 0;
  for (const last = bytes.length - 7; at < last; at += 8) {
    crc ^= bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24;
    crc = t7[crc & 255] ^ t6[crc >>> 8 & 255] ^ t5[crc >>> 16 & 255] ^ t4[crc >>> 24] ^
      t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) crc = crc >>> 8 ^ t0[(crc ^ bytes[at]) & 255];
  return ~crc >>> 0;
};

const TABLES: readonly Uint32Array[] = /* @__PURE__ */ newTables();

function newTables(): Uint32Array[] {
  const tables = Array.from({ length: 8 }, () => new Uint32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >>> 1 ^ 0xedb88320 : crc >>> 1;
    tables[0][byte] = crc;
  }
  for (let byte = 0; byte < 256; byte++) {
    for (let i = 1; i < 8; i++) {
      const before = tables[i - 1][byte];
      tables[i][byte] = before >>> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}
