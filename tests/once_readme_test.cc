// The table of operators in README.md against the registry: what it says for this architecture's instruction sets is what there is.
#include <gtest/gtest.h>
#include <skua/kernel.h>

#include <algorithm>
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
  std::map<std::string, std::set<std::string>> families;  // of each instruction set
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    skua_kernel_info k;
    ASSERT_EQ(skua_kernel_at(i, &k), SKUA_STATUS_OK);
    families[k.isa].insert(k.family);
  }
  // The folder whose kernels a row stands for.
  const std::vector<std::pair<std::string, std::string>> folder = {{"gemm", "gemm"}, {"(direct)", "gemm"}, {"(Winograd)", "winograd"}, {"(depthwise)", "depthwise"}, {"pool2d", "pooling"},
                                                                   {"unary", "elementwise"}, {"softmax", "normalize"}, {"reduce", "reduce"}, {"resize2d", "resize"}, {"transpose,", "data"}, {"convert", "elementwise"}};
  std::ifstream readme(SKUA_SOURCE_DIR "/README.md");
  std::vector<std::string> header;
  size_t rows = 0, compared = 0;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("| operator |", 0) == 0) header = cells(line);
    if (header.empty() || line.rfind("|", 0) != 0 || line.rfind("|-", 0) == 0 || line.rfind("| operator |", 0) == 0) continue;
    const std::vector<std::string> row = cells(line);
    ASSERT_EQ(row.size(), header.size()) << line;
    const auto which = std::find_if(folder.begin(), folder.end(), [&](const auto& f) { return row[0].find(f.first) != std::string::npos; });
    ASSERT_NE(which, folder.end()) << row[0];
    ++rows;
    for (size_t c = 1; c < header.size(); ++c) {
      const std::string isa = header[c].substr(0, header[c].find(' '));
      bool here = false;
      for (size_t i = 0; i < skua_isa_count(); ++i) {
        skua_isa_info info;
        ASSERT_EQ(skua_isa_at(i, &info), SKUA_STATUS_OK);
        here |= isa == info.name && info.compiled;
      }
      if (!here) continue;
      ++compared;
      EXPECT_EQ(row[c].find("f32") != std::string::npos, families[isa].count(which->second) != 0) << row[0] << " on " << isa;
    }
  }
  EXPECT_EQ(rows, folder.size());
  EXPECT_GE(compared, folder.size());
}

}  // namespace
