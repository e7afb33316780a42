// AMX in software, linked into every test program: with SKUA_TEST_AMX=software, on a processor with AVX512-VNNI (of
// bf16: AVX512-BF16) and without AMX, the tile instructions, which it refuses (SIGILL), are computed here, so that the
// kernels' own code runs. Encodings and meaning: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
// 2. What the manual makes a fault ends the program.
#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "dispatch/cpu.h"

namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);
struct Tiles {
  TileConfig config;
  uint8_t data[kTiles][kMostRows][kMostBytes];
};
thread_local Tiles tiles;

[[noreturn]] void refuse(const char* text) {
  (void)!write(2, text, strlen(text));
  _exit(132);  // as a shell reports SIGILL
}
void demand(bool holds, const char* text) {
  if (!holds) refuse(text);
}

// A VEX instruction of three bytes of prefix, in map 0F38: what all of AMX are.
struct Instruction {
  uint8_t opcode, modrm, prefix;  // prefix: 0 none, 1 66, 2 F3, 3 F2
  unsigned reg, rm, vvvv;
  bool memory;
  uint8_t* address;
  int64_t stride;  // of an operand with an index; 0 where there is none
  unsigned length;
};

int64_t general(const ucontext_t& context, unsigned number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return context.uc_mcontext.gregs[kOrder[number]];
}

bool decode(const ucontext_t& context, Instruction& i) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  if (p[0] != 0xc4 || (p[1] & 31) != 2 || (p[2] & 0x84)) return false;  // W and L are 0
  i.prefix = p[2] & 3;
  i.vvvv = ~p[2] >> 3 & 15;
  i.opcode = p[3];
  i.modrm = p[4];
  i.reg = i.modrm >> 3 & 7;
  i.rm = i.modrm & 7;
  i.memory = i.modrm >> 6 != 3;
  i.length = 5;
  i.stride = 0;
  if (!i.memory) return true;
  const unsigned x = ~p[1] >> 6 & 1, b = ~p[1] >> 5 & 1, mod = i.modrm >> 6;
  int64_t address = 0;
  unsigned base = i.rm;
  if (i.rm == 4) {
    const uint8_t sib = p[i.length++];
    base = sib & 7;
    if (const unsigned index = (sib >> 3 & 7) | x << 3; index != 4)
      i.stride = int64_t(uint64_t(general(context, index)) << (sib >> 6));
  }
  const bool none = base == 5 && mod == 0;
  if (none && i.rm != 4) return false;  // relative to the instruction: the kernels have none
  if (!none) address = general(context, base | b << 3);
  if (mod == 1) {
    address += int8_t(p[i.length]);
    i.length += 1;
  } else if (mod == 2 || none) {
    int32_t displacement;
    memcpy(&displacement, p + i.length, 4);
    address += displacement;
    i.length += 4;
  }
  i.address = reinterpret_cast<uint8_t*>(address);
  return true;
}

void configure(const uint8_t* from) {
  TileConfig config;
  memcpy(&config, from, sizeof config);
  // no fault: other code of the thread would carry them along
  demand(!tiles.config.palette, "AMX: tiles of before were not released\n");
  demand(config.palette == 1 && !config.start_row, "AMX: only palette 1 from row 0 is expected\n");
  for (uint8_t r : config.reserved) demand(!r, "AMX: reserved bytes of the configuration are not zero\n");
  for (int t = 0; t < 16; ++t) {
    demand(t < kTiles || (!config.row_bytes[t] && !config.rows[t]), "AMX: more than eight tiles\n");
    demand(config.row_bytes[t] <= kMostBytes && config.rows[t] <= kMostRows && !config.row_bytes[t] == !config.rows[t],
           "AMX: a tile's rows or bytes\n");
  }
  memset(&tiles, 0, sizeof tiles);
  tiles.config = config;
}

// Of a product: rows, columns, and words of the depth.
struct Shape {
  int rows, columns, deep;
};
Shape shape_of(unsigned sum, unsigned a, unsigned b) {
  const TileConfig& c = tiles.config;
  const Shape s = {c.rows[sum], c.row_bytes[sum] / 4, c.row_bytes[a] / 4};
  demand(sum != a && sum != b && a != b, "AMX: a product of a tile by itself\n");
  demand(s.rows && c.rows[a] == s.rows && c.rows[b] == s.deep && c.row_bytes[b] == c.row_bytes[sum] &&
             c.row_bytes[sum] % 4 == 0 && c.row_bytes[a] % 4 == 0,
         "AMX: tiles of a product do not match\n");
  return s;
}

void multiply(unsigned sum, unsigned a, unsigned b, bool a_signed, bool b_signed) {
  const auto [rows, columns, fours] = shape_of(sum, a, b);
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n) {
      uint32_t total;
      memcpy(&total, &tiles.data[sum][m][4 * n], 4);
      for (int k = 0; k < fours; ++k)
        for (int i = 0; i < 4; ++i) {
          const uint8_t x = tiles.data[a][m][4 * k + i], y = tiles.data[b][k][4 * n + i];
          total += uint32_t((a_signed ? int8_t(x) : int(x)) * (b_signed ? int8_t(y) : int(y)));
        }
      memcpy(&tiles.data[sum][m][4 * n], &total, 4);
    }
}

// A float, or 0 for a denormal: what these products read and leave.
float plain(uint32_t bits) {
  if (!(bits & 0x7f800000)) bits &= 0x80000000;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
float plain(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return plain(bits);
}

// Of each row and column the products of even and of odd places are summed apart, then both, then what was there.
void multiply_bf16(unsigned sum, unsigned a, unsigned b) {
  const auto [rows, columns, pairs] = shape_of(sum, a, b);
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n) {
      float part[2] = {}, total;
      for (int k = 0; k < pairs; ++k)
        for (int i = 0; i < 2; ++i) {
          uint16_t x, y;
          memcpy(&x, &tiles.data[a][m][4 * k + 2 * i], 2);
          memcpy(&y, &tiles.data[b][k][4 * n + 2 * i], 2);
          part[i] = plain(std::fmaf(plain(uint32_t(x) << 16), plain(uint32_t(y) << 16), part[i]));
        }
      memcpy(&total, &tiles.data[sum][m][4 * n], 4);
      total = plain(plain(total) + plain(part[0] + part[1]));
      memcpy(&tiles.data[sum][m][4 * n], &total, 4);
    }
}

bool execute(const Instruction& i) {
  enum { kNone, k66, kF3, kF2 };
  TileConfig& c = tiles.config;
  const bool loads = i.opcode == 0x4b && i.memory && i.rm == 4 && (i.prefix == kF2 || i.prefix == k66),
             stores = i.opcode == 0x4b && i.memory && i.rm == 4 && i.prefix == kF3;
  if (i.opcode == 0x49 && i.vvvv == 0) {
    if (i.memory && i.prefix == kNone && i.reg == 0) return configure(i.address), true;        // ldtilecfg
    if (!i.memory && i.prefix == kNone && i.modrm == 0xc0) return memset(&tiles, 0, sizeof tiles), true;  // tilerelease
    if (!i.memory && i.prefix == kF2 && i.rm == 0) {                                           // tilezero
      demand(c.rows[i.reg], "AMX: a tile that is not configured\n");
      return memset(tiles.data[i.reg], 0, sizeof tiles.data[0]), true;
    }
  }
  if (loads || stores) {  // tileloadd, tileloaddt1; tilestored
    demand(c.rows[i.reg], "AMX: a tile that is not configured\n");
    if (loads) memset(tiles.data[i.reg], 0, sizeof tiles.data[0]);
    for (int r = 0; r < c.rows[i.reg]; ++r) {
      uint8_t *row = tiles.data[i.reg][r], *at = i.address + r * i.stride;
      if (loads) memcpy(row, at, c.row_bytes[i.reg]);
      else memcpy(at, row, c.row_bytes[i.reg]);
    }
    return true;
  }
  if (i.opcode == 0x5e && !i.memory && i.vvvv < kTiles) {  // tdpbssd F2, tdpbsud F3, tdpbusd 66, tdpbuud none
    multiply(i.reg, i.rm, i.vvvv, i.prefix == kF2 || i.prefix == kF3, i.prefix == kF2 || i.prefix == k66);
    return true;
  }
  // tdpbf16ps
  if (i.opcode == 0x5c && !i.memory && i.vvvv < kTiles && i.prefix == kF3)
    return multiply_bf16(i.reg, i.rm, i.vvvv), true;
  return false;
}

void on_illegal(int, siginfo_t*, void* state) {
  ucontext_t& context = *static_cast<ucontext_t*>(state);
  Instruction i = {};
  if (!decode(context, i) || !execute(i)) {
    signal(SIGILL, SIG_DFL);  // not AMX: the instruction is met again
    return;
  }
  context.uc_mcontext.gregs[REG_RIP] += i.length;
}

const bool installed = [] {
  using skua::Isa, skua::isa_bit;
  const char* asked = std::getenv("SKUA_TEST_AMX");
  if (!asked) return false;
  if (strcmp(asked, "software")) refuse("SKUA_TEST_AMX is something else than software\n");
  auto& detected = const_cast<skua::Cpu&>(skua::cpu()).detected;
  const skua::IsaMask missing = ((detected & isa_bit(Isa::avx512vnni) ? isa_bit(Isa::amx_int8) : 0) |
                                 (detected & isa_bit(Isa::avx512bf16) ? isa_bit(Isa::amx_bf16) : 0)) &
                                ~detected;
  if (!missing || (detected & (isa_bit(Isa::amx_int8) | isa_bit(Isa::amx_bf16)))) return false;
  struct sigaction action = {};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGILL, &action, nullptr)) return false;
  detected |= missing;
  return true;
}();

}  // namespace
#endif
