// The table of operators in README.md against the registry: what it says for this architecture's instruction sets is
// what there is.
#include <gtest/gtest.h>
#include <skua/kernel.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found;
  std::stringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    found.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
  }
  return found;
}

TEST(Readme, TableSaysWhatTheRegistryHas) {
  std::map<std::string, std::set<std::string>> families;  // "gemm f16" of each instruction set
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    skua_kernel_info k;
    ASSERT_EQ(skua_kernel_at(i, &k), SKUA_STATUS_OK);
    families[k.isa].insert(k.family + std::string(" ") + skua_dtype_name(k.type));
  }
  // The folder whose kernels a row stands for.
  const std::vector<std::pair<std::string, std::string>> folder = {
      {"gemm", "gemm"},       {"(direct)", "gemm"},     {"(Winograd)", "winograd"}, {"(depthwise)", "depthwise"},
      {"pool2d", "pooling"},  {"unary", "elementwise"}, {"softmax", "normalize"},   {"reduce", "reduce"},
      {"resize2d", "resize"}, {"transpose,", "data"},   {"convert", "elementwise"}};
  std::ifstream readme(SKUA_SOURCE_DIR "/README.md");
  std::vector<std::string> header;
  size_t rows = 0, compared = 0;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("| operator |", 0) == 0) header = cells(line);
    if (line.rfind("|", 0) != 0) header.clear();  // the table has ended: the README has others
    if (header.empty() || line.rfind("|", 0) != 0 || line.rfind("|-", 0) == 0 || line.rfind("| operator |", 0) == 0)
      continue;
    const std::vector<std::string> row = cells(line);
    ASSERT_EQ(row.size(), header.size()) << line;
    const auto which = std::find_if(folder.begin(), folder.end(),
                                    [&](const auto& f) { return row[0].find(f.first) != std::string::npos; });
    ASSERT_NE(which, folder.end()) << row[0];
    ++rows;
    const auto says = [](const std::string& cell, const std::string& word) {
      return (" " + cell + " ").find(" " + word + " ") != std::string::npos;
    };
    // The last column: the sets that add arithmetic in half types to this operator.
    for (size_t i = 0; i < skua_isa_count(); ++i) {
      skua_isa_info info;
      ASSERT_EQ(skua_isa_at(i, &info), SKUA_STATUS_OK);
      const bool column = std::any_of(header.begin(), header.end() - 1, [&](const std::string& name) {
        return name.substr(0, name.find(' ')) == info.name;
      });
      if (!info.compiled || column) continue;
      const auto& has = families[info.name];
      const bool any = std::any_of(has.begin(), has.end(),
                                   [&](const std::string& f) { return f.rfind(which->second + " ", 0) == 0; });
      EXPECT_TRUE(any || !says(row.back(), info.name)) << row[0] << " on " << info.name;
    }
    for (size_t c = 1; c + 1 < header.size(); ++c) {
      const std::string isa = header[c].substr(0, header[c].find(' '));
      bool here = false;
      for (size_t i = 0; i < skua_isa_count(); ++i) {
        skua_isa_info info;
        ASSERT_EQ(skua_isa_at(i, &info), SKUA_STATUS_OK);
        here |= isa == info.name && info.compiled;
      }
      if (!here) continue;
      ++compared;
      // A half type may be there before the table says so, never the other way round.
      // of data, elements are bits: rows of the registry stand for widths
      for (const char* type : {"f32", "f16", "bf16"})
        if (const bool f32 = !std::strcmp(type, "f32"); f32 || which->second != "data") {
          const bool there = families[isa].count(which->second + " " + type) != 0, said = says(row[c], type);
          EXPECT_TRUE(f32 ? said == there : there || !said) << row[0] << " in " << type << " on " << isa;
        }
    }
  }
  EXPECT_EQ(rows, folder.size());
  EXPECT_GE(compared, folder.size());
}

}  // namespace
