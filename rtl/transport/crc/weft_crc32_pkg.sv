// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 of Ethernet (reflected, polynomial 0xedb88320) as linear maps over GF(2), worked out at
// elaboration: no generated file, and nothing of it is left at run time but XOR masks.
//
// The register shifts right, so byte 0 of a frame goes in first, bit 0 of each byte first, and the
// value leaves little-endian (crc[7:0] is the first byte on the wire). Bit 31 of a register stands
// for 1, bit 30 for x, ..., bit 0 for x^31: A, one step over a zero bit, multiplies by x.
// A state is kept "early": state = A^-EarlyBits (plain CRC register). At 32 the last bits of a beat
// are bits of the state as they stand and cost nothing. Every frame of ours ends 2 mod 4 bytes
// behind a beat boundary, so 48 costs next to nothing too, and turns the distance between the end
// of the frame and the end of the beat into a whole number of 4-byte words.
// Checked against zlib by tests/unit/tx. docs/tx.md, section ICRC.
`default_nettype none
package weft_crc32_pkg;

  localparam int unsigned EarlyBits = 48;
  localparam int unsigned ShortW = 137;  // bits of a beat that shorten() leaves

  typedef logic [31:0] crc_t;
  typedef logic [31:0][31:0] map_t;  // row r: which bits of the old state make bit r of the new
  typedef logic [511:0] text_t;  // a beat: the first bit, [0], stands for the highest power
  typedef logic [ShortW-1:0] short_t;
  typedef logic [31:0][ShortW-1:0] short_map_t;  // row r: which bits of the shortened beat do

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

  // map * state.
  function automatic crc_t apply(map_t map, crc_t state);
    crc_t next;
    for (int r = 0; r < 32; r++) next[r] = ^(map[r] & state);
    return next;
  endfunction

  // What powers of x above 136 amount to, by multiples of the polynomial that have few terms:
  //   x^274 = x^93 + x^75 + x^19 + x^11 + 1                    (used twice: 512 to 393 to 274 bits)
  //   x^185 = x^93 + x^54 + x^46 + x^20 + x^19 + 1
  //   x^137 = x^84 + x^80 + x^70 + x^29 + x^8  + 1
  // A bit costs 5 or 6 XORs so; its column of the CRC matrix would cost 16. Each step takes as many
  // bits off the front as stay clear of one another: x^n becomes x^(n-d+e) by the term x^e of x^d,
  // so bit i of the k bits in front goes to bit i + d - e - k of the rest.
  function automatic short_t shorten(text_t text);
    logic [392:0] a;
    logic [273:0] b;
    logic [184:0] c;
    a = text[511:119];
    a ^= 393'({text[118:0], 62'd0}) ^ 393'({text[118:0], 80'd0}) ^ 393'({text[118:0], 136'd0})
        ^ 393'({text[118:0], 144'd0}) ^ 393'({text[118:0], 155'd0});
    b = a[392:119];
    b ^= 274'({a[118:0], 62'd0}) ^ 274'({a[118:0], 80'd0}) ^ 274'({a[118:0], 136'd0})
        ^ 274'({a[118:0], 144'd0}) ^ {a[118:0], 155'd0};
    c = b[273:89];
    c ^= 185'({b[88:0], 3'd0}) ^ 185'({b[88:0], 42'd0}) ^ 185'({b[88:0], 50'd0})
        ^ 185'({b[88:0], 76'd0}) ^ 185'({b[88:0], 77'd0}) ^ {b[88:0], 96'd0};
    return c[184:48] ^ 137'({c[47:0], 5'd0}) ^ 137'({c[47:0], 9'd0}) ^ 137'({c[47:0], 19'd0})
        ^ 137'({c[47:0], 60'd0}) ^ 137'({c[47:0], 81'd0}) ^ {c[47:0], 89'd0};
  endfunction

  // What a shortened beat adds to the state.
  function automatic short_map_t short_map();
    short_map_t map;
    crc_t column = advance(32'd1, 1 - int'(EarlyBits));  // the last bit to go in
    for (int c = int'(ShortW) - 1; c >= 0; c--) begin
      for (int r = 0; r < 32; r++) map[r][c] = column[r];
      column = advance(column, 1);
    end
    return map;
  endfunction

  // The map s -> s^(2^n), squared n times as a polynomial: linear, because (a + b)^2 = a^2 + b^2.
  // Squared 32 times is what it was, so n = 27 takes the 32nd root.
  function automatic map_t power_map(int n);
    map_t square, map;
    for (int c = 0; c < 32; c++) begin
      crc_t column = advance(32'h8000_0000, 2 * (31 - c));
      for (int r = 0; r < 32; r++) square[r][c] = column[r];
    end
    for (int c = 0; c < 32; c++) begin
      crc_t column = 32'd1 << c;
      for (int i = 0; i < n; i++) column = apply(square, column);
      for (int r = 0; r < 32; r++) map[r][c] = column[r];
    end
    return map;
  endfunction

  // left * right: the right one acts first.
  function automatic map_t product(map_t left, map_t right);
    map_t map;
    for (int c = 0; c < 32; c++) begin
      crc_t column = apply(left, apply(right, 32'd1 << c));
      for (int r = 0; r < 32; r++) map[r][c] = column[r];
    end
    return map;
  endfunction

  // State behind a beat whose last `zero_bytes` bytes are zeros and the rest is the end of a
  // message with its correct CRC.
  function automatic crc_t residue_behind(int zero_bytes);
    return advance(Residue, 8 * zero_bytes - int'(EarlyBits));
  endfunction

endpackage
`default_nettype wire
