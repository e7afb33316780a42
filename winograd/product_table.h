// The table of a product kernel: functions for every number of rows and vectors of columns. Of::of<rows, vectors> is
// one.
#pragma once
#include "simd/simd.h"
#include "winograd/winograd_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <class Of, int MR, int NV, int r = 1, int v = 1> constexpr void fill(WinogradProductTable& table) {
  table.at[(v - 1) * MR + r - 1] = Of::template of<r, v>;
  if constexpr (r < MR) fill<Of, MR, NV, r + 1, v>(table);
  else if constexpr (v < NV) fill<Of, MR, NV, 1, v + 1>(table);
}
template <class Of, int MR, int NV> constexpr WinogradProductTable make_table() {
  static_assert(MR * NV <= 32);
  WinogradProductTable table = {};
  fill<Of, MR, NV>(table);
  if constexpr (requires { Of::full; }) table.full = Of::full;
  if constexpr (requires { Of::rate; }) table.rate = Of::rate;
  return table;
}
template <class Of, int MR, int NV> constexpr WinogradProductTable table_of = make_table<Of, MR, NV>();

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
