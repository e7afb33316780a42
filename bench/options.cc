#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <fstream>
#include <sstream>

#include <skua/skua.h>
#include "session.h"

namespace bench {

const char* const suite_names[suite_count] = {"machine",  "overhead", "kernels", "layers",
                                              "networks", "regret",   "steps"};

namespace {

bool fail(const std::string& text) {
  fprintf(stderr, "skua-bench: %s\n", text.c_str());
  return false;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

bool number(const char* text, long low, long high, int* out) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (*end || end == text || value < low || value > high) return false;
  *out = int(value);
  return true;
}

bool known(const std::vector<std::string>& names, const std::vector<std::string>& all, const char* flag) {
  for (const std::string& n : names)
    if (std::find(all.begin(), all.end(), n) == all.end()) {
      std::string list;
      for (const std::string& a : all) list += (list.empty() ? "" : ", ") + a;
      return fail(std::string(flag) + ": \"" + n + "\" is not one of " + list);
    }
  return true;
}

bool read_shapes(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return fail(path + ": " + (errno ? strerror(errno) : "empty"));
  Corpus c;
  std::string error;
  c.name = path.substr(path.rfind('/') + 1);
  if (!parse_corpus(path.c_str(), text.str().c_str(), &c, &error)) return fail(error);
  if (c.steps.empty()) return fail(path + ": no layer");
  own_shapes.push_back(std::move(c));
  return true;
}

}  // namespace

void print_help() {
  printf(
      "skua-bench: how fast the library is on this machine, beside its peers.\n\n"
      "  --suite NAME[,NAME]  machine   measured peaks of a core: multiply-adds per instruction set, bandwidth per "
      "cache level\n"
      "                       overhead  time of create, plan and run themselves\n"
      "                       kernels   every kernel this CPU can run, warm\n"
      "                       layers    products, convolutions, pooling, ... of real networks (bench/shapes)\n"
      "                       networks  whole networks as chains of operators\n"
      "                       regret    what the choice of algorithm and tile costs against the best that can be "
      "forced, no peers\n"
      "                       steps     series of one extent each (bench/shapes/steps.txt): which layers take longer "
      "than a larger one, no peers\n"
      "                       default: all of them but regret and steps\n"
      "  --filter REGEX       only the cases whose name contains a match, e.g. 'gemm_f32/512' or 'resnet50/3x3'\n"
      "  --type T[,T]         element types of kernels, layers, networks, regret: f32 (default), f16, bf16, s8; all "
      "but f32 also against our own f32\n"
      "  --threads N[,N]      workers (default 1: one thread, pinned to a core); \"1,2\" runs each case with both and "
      "prints the scaling\n"
      "  --isa NAME           nothing above this instruction set, for the peers too; those that cannot be capped are "
      "left out\n"
      "  --without-amx        AMX is refused to this process: all contestants go without (Linux)\n"
      "  --cpu N              the core to pin to with one thread (default: the fastest)\n"
      "  --device API:N       layers and networks on a GPU, opencl:0 or vulkan:0 as skua_device_list() numbers them, "
      "by its own clock, with the CPU's time beside them\n"
      "  --numerics NAME      default, strict or fast: what our products, convolutions and functions of layers, "
      "networks, regret may trade for speed, on the CPU beside a device too\n"
      "  --shapes FILE        layers, a network or series of yours instead of the corpus, written as those of "
      "bench/shapes; may be given more than once\n"
      "  --resolution N       images of the networks are N x N\n"
      "  --peers LIST|none    xnnpack,onednn,openblas,blis; on a device cpu,clblast,cublas (default: those that are "
      "there)\n"
      "  --quick              fewer samples: minutes instead of half an hour\n"
      "  --json FILE          results, one object per case\n"
      "  --html FILE          a report that needs no other file\n"
      "  --compare FILE       an earlier --json: prints what changed since\n"
      "  --list               names of the cases, without running them\n"
      "  --choices            the algorithm and the kernel that would be chosen for each layer, nothing measured; "
      "SKUA_CORE=zen5 asks for those of another chip\n"
      "  --help\n");
}

bool parse_options(int argc, char** argv, Options* o) {
  std::vector<std::string> shapes;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i], value;
    const size_t eq = flag.find('=');
    bool has_value = eq != std::string::npos;
    if (has_value) {
      value = flag.substr(eq + 1);
      flag.resize(eq);
    }
    const bool plain = flag == "--quick" || flag == "--list" || flag == "--choices" || flag == "--without-amx" ||
                       flag == "--help" || flag == "-h";
    const bool valued = flag == "--suite" || flag == "--filter" || flag == "--threads" || flag == "--type" ||
                        flag == "--cpu" || flag == "--isa" || flag == "--peers" || flag == "--json" ||
                        flag == "--html" || flag == "--compare" || flag == "--device" || flag == "--resolution" ||
                        flag == "--shapes" || flag == "--numerics";
    if (!plain && !valued) return fail("unknown argument \"" + std::string(argv[i]) + "\"; --help lists them");
    if (plain && has_value) return fail(flag + " takes no value");
    if (valued && !has_value) {
      if (i + 1 >= argc) return fail(flag + " needs a value");
      value = argv[++i];
    }
    if (flag == "--quick") o->quick = true;
    else if (flag == "--list") o->list = true;
    else if (flag == "--choices") o->choices = true;
    else if (flag == "--without-amx") {
      if (!refuse_amx()) return fail("--without-amx: this system cannot refuse it");
    }
    else if (plain) o->help = true;
    else if (flag == "--suite") o->suites = split(value);
    else if (flag == "--filter") o->filter = value;
    else if (flag == "--shapes") shapes.push_back(value);
    else if (flag == "--json") o->json = value;
    else if (flag == "--html") o->html = value;
    else if (flag == "--compare") o->compare = value;
    else if (flag == "--peers") o->peers = value == "none" ? std::vector<std::string>{"none"} : split(value);
    else if (flag == "--isa") o->isa = value;
    else if (flag == "--device") {
      const size_t colon = value.find(':');
      const std::string api = value.substr(0, colon);
      int index = 0;
      if ((api != "opencl" && api != "vulkan") ||
          (colon != std::string::npos && !number(value.c_str() + colon + 1, 0, 31, &index)))
        return fail("--device: \"" + value + "\" is not opencl:N or vulkan:N");
      bench_device = {api == "opencl" ? SKUA_DEVICE_API_OPENCL : SKUA_DEVICE_API_VULKAN, uint32_t(index)};
    }
    else if (flag == "--numerics") {
      const skua_numerics all[] = {SKUA_NUMERICS_DEFAULT, SKUA_NUMERICS_STRICT, SKUA_NUMERICS_FAST};
      const auto* named =
          std::find_if(std::begin(all), std::end(all), [&](skua_numerics n) { return value == numerics_name(n); });
      if (named == std::end(all)) return fail("--numerics: \"" + value + "\" is not one of default, strict, fast");
      bench_numerics = *named;
    }
    else if (flag == "--resolution") {
      int extent = 0;
      if (!number(value.c_str(), 32, 4096, &extent))
        return fail("--resolution: \"" + value + "\" is not a number from 32 to 4096");
      network_extent = size_t(extent);
    }
    else if (flag == "--type") {
      o->types.clear();
      for (const std::string& part : split(value))
        if (skua_dtype type; parse_type(part, &type)) o->types.push_back(type);
        else return fail("--type: \"" + part + "\" is not one of f32, f16, bf16, s8");
    }
    else if (flag == "--threads") {
      o->threads.clear();
      for (const std::string& part : split(value))
        if (int n; number(part.c_str(), 1, 1024, &n)) o->threads.push_back(n);
        else return fail("--threads: \"" + part + "\" is not a number from 1 to 1024");
      if (o->threads.empty()) return fail("--threads: no number");
    } else if (!number(value.c_str(), 0, 1023, &o->cpu))
      return fail("--cpu: \"" + value + "\" is not a number from 0 to 1023");
  }
  for (const std::string& path : shapes)  // after --resolution
    if (!read_shapes(path)) return false;
  std::vector<std::string> all(suite_names, suite_names + suite_count);
  if (on_device())
    all.erase(std::remove_if(all.begin(), all.end(), [](const std::string& name) { return !is_device_suite(name); }),
              all.end());
  if (o->suites.empty() && !own_shapes.empty()) o->suites = {"layers", "networks"};
  if (o->suites.empty()) o->suites.assign(all.begin(), all.end() - (on_device() ? 0 : suites_on_request));
  if (!known(o->suites, all, "--suite")) return false;
  if (o->types.empty()) o->types = {SKUA_DTYPE_F32};
  if (o->peers.empty()) o->peers = peer_names();
  if (o->peers == std::vector<std::string>{"none"}) o->peers.clear();
  if (!known(o->peers, peer_names(), "--peers")) return false;
  if (!o->filter.empty()) {
    try {
      std::regex probe(o->filter);
    } catch (const std::regex_error& e) {
      return fail("--filter: \"" + o->filter + "\" is not a regular expression (" + e.what() + ")");
    }
  }
  if (!o->isa.empty()) {
    std::vector<std::string> isas;
    skua_isa_info info;
    for (size_t i = 0; i < skua_isa_count(); ++i)
      if (skua_isa_at(i, &info) == SKUA_STATUS_OK && info.detected) isas.push_back(info.name);
    if (!known({o->isa}, isas, "--isa")) return false;
    if (o->isa == isas.back()) o->isa.clear();  // all there is: no cap
  }
  // Files first: a run of minutes must not end in a path that cannot be written.
  for (const std::string& path : {o->json, o->html}) {
    if (path.empty()) continue;
    FILE* f = fopen(path.c_str(), "a");
    if (!f) return fail(path + ": " + strerror(errno));
    fclose(f);
  }
  return true;
}

}  // namespace bench
