// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 of Ethernet (reflected, polynomial 0xedb88320) as linear maps over GF(2), worked out at
// elaboration: no generated file, and nothing of it is left at run time but XOR masks.
//
// The register shifts right, so byte 0 of a frame goes in first, bit 0 of each byte first, and the
// value leaves little-endian (crc[7:0] is the first byte on the wire).
// A state is kept "two bytes early": state = A^-16 (plain CRC register), A = one step over a zero
// bit. Every frame of ours ends 2 mod 4 bytes behind a beat boundary, so this turns the distance
// between the end of the frame and the end of the beat into a whole number of 4-byte words.
// Checked against zlib by tests/unit/tx. docs/tx.md, section ICRC.
`default_nettype none
package weft_crc32_pkg;

  typedef logic [31:0] crc_t;
  typedef logic [31:0][31:0] map_t;  // row r: which bits of the old state make bit r of the new
  typedef logic [31:0][511:0] beat_map_t;  // row r: which bits of the beat do

  localparam crc_t Poly = 32'hedb8_8320;

  // Plain register after the eight bytes of ones that stand for the LRH in an ICRC (and start value
  // all ones). XOR it into the first four covered bytes and start from zero.
  localparam crc_t IcrcSeed = 32'hdebb_20e3;

  // Plain register when a message and its correct CRC have gone in.
  localparam crc_t Residue = 32'hdebb_20e3;

  // `bits` zero bits forth, or back when negative: A is invertible.
  function automatic crc_t advance(crc_t state, int bits);
    crc_t s = state;
    for (int i = 0; i < bits; i++) s = (s >> 1) ^ (s[0] ? Poly : '0);
    for (int i = 0; i > bits; i--) s = s[31] ? ((s ^ Poly) << 1) | 32'd1 : s << 1;
    return s;
  endfunction

  // The map A^bits.
  function automatic map_t state_map(int bits);
    map_t map;
    for (int c = 0; c < 32; c++) begin
      crc_t column = advance(32'd1 << c, bits);
      for (int r = 0; r < 32; r++) map[r][c] = column[r];
    end
    return map;
  endfunction

  // What a 64-byte beat adds to the state, "two bytes early".
  function automatic beat_map_t beat_map();
    beat_map_t map;
    crc_t column = advance(32'd1, 1 - 16);  // the last bit to go in
    for (int c = 511; c >= 0; c--) begin
      for (int r = 0; r < 32; r++) map[r][c] = column[r];
      column = advance(column, 1);
    end
    return map;
  endfunction

  // map * state.
  function automatic crc_t apply(map_t map, crc_t state);
    crc_t next;
    for (int r = 0; r < 32; r++) next[r] = ^(map[r] & state);
    return next;
  endfunction

  // State, as kept by weft_crc32_beat, behind a last beat of which 2 + 4*`end_word` bytes belong to
  // a message with its correct CRC and the rest are zeros.
  function automatic crc_t residue_behind(int unsigned end_word);
    return advance(Residue, 8 * (60 - 4 * int'(end_word)));
  endfunction

endpackage
`default_nettype wire
