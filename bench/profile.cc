#include "profile.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#endif

namespace bench {
namespace {

constexpr size_t kRingPages = 64;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// name: as demangled, which may begin with a return type and ends with arguments.
Where where_is(std::string name) {
  const std::string anonymous = "(anonymous namespace)";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;) name.replace(at, anonymous.size(), "anonymous");
  name.resize(std::min(name.size(), name.find('(')));
  // memcpy, memmove, memset of a static C library
  if (name.rfind("mem", 0) == 0 || name.rfind("__mem", 0) == 0) return Where::copy;
  if (!has(name, "skua::")) return name.rfind("skua_", 0) == 0 ? Where::driver : Where::outside;
  static const std::vector<std::string> isas = [] {
    std::vector<std::string> list;
    skua_isa_info info;
    for (size_t i = 0; i < skua_isa_count(); ++i)
      if (skua_isa_at(i, &info) == SKUA_STATUS_OK) list.push_back("skua::" + std::string(info.name) + "::");
    return list;
  }();
  const bool unit =
      std::any_of(isas.begin(), isas.end(), [&](const std::string& isa) { return has(name, isa.c_str()); });
  if (has(name, "transform") || has(name, "list_tiles")) return Where::transform;
  for (const char* word : {"pack", "copy", "strip", "ring", "to_nhwc", "to_nchw", "transpose"})
    if (has(name, word)) return Where::copy;
  return unit ? Where::kernel : Where::driver;
}

}  // namespace

void Sampler::read_symbols() {
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (fd < 0) return;
  void* map = fstat(fd, &s) == 0 ? mmap(nullptr, size_t(s.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return;
  size_t base = 0;  // where the program was loaded
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<size_t*>(to) = size_t(info->dlpi_addr);
        return 1;
      },
      &base);
  const char* file = static_cast<const char*>(map);
  const auto* head = reinterpret_cast<const ElfW(Ehdr)*>(file);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file + head->e_shoff);
  for (int i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* list = reinterpret_cast<const ElfW(Sym)*>(file + sections[i].sh_offset);
    const char* names = file + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof *list; ++k) {
      if ((list[k].st_info & 15) != STT_FUNC || !list[k].st_size) continue;
      const size_t begin = base + (size_t(list[k].st_value) & ~size_t(sizeof(void*) == 4));  // Thumb: bit 0 is a mark
      symbols_.push_back({begin, begin + size_t(list[k].st_size), names + list[k].st_name});
    }
  }
  munmap(map, size_t(s.st_size));
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
}

Where Sampler::where(size_t address) {
  const auto found = known_.find(address);
  if (found != known_.end()) return found->second;
  Where w = Where::outside;
  auto next = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                               [](size_t a, const Symbol& s) { return a < s.begin; });
  if (next != symbols_.begin() && address < (--next)->end) {
    char* plain = abi::__cxa_demangle(next->name.c_str(), nullptr, nullptr, nullptr);
    w = where_is(plain ? plain : next->name);
    free(plain);
  } else if (!symbols_.empty() && address >= symbols_.front().begin && address < symbols_.back().end) {
    w = Where::driver;  // a jump through the linkage table, which has no symbol
  } else if (Dl_info info;
             dladdr(reinterpret_cast<void*>(address), &info) && info.dli_fname && has(info.dli_fname, "libc.so")) {
    w = Where::copy;  // the library takes memcpy, memmove and memset from there
  }
  return known_[address] = w;
}

Sampler::Sampler() {
#if defined(__linux__)
  read_symbols();
  const bool symbols =
      std::any_of(symbols_.begin(), symbols_.end(), [](const Symbol& s) { return has(s.name, "4skua"); });
  if (!symbols) return;  // stripped
  perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 100000;
  attr.sample_type = PERF_SAMPLE_IP;
  attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
  fd_ = int(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd_ < 0) return;
  void* map =
      mmap(nullptr, (1 + kRingPages) * size_t(sysconf(_SC_PAGESIZE)), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (map != MAP_FAILED) ring_ = static_cast<char*>(map);
#endif
}

Sampler::~Sampler() {
  if (ring_) munmap(ring_, (1 + kRingPages) * size_t(sysconf(_SC_PAGESIZE)));
  if (fd_ >= 0) close(fd_);
}

#if defined(__linux__)
void Sampler::start() { ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0); }
void Sampler::stop() { ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0); }

void Sampler::drain(const std::function<void(Where)>& sample) {
  auto* page = reinterpret_cast<perf_event_mmap_page*>(ring_);
  const size_t size = kRingPages * size_t(sysconf(_SC_PAGESIZE));
  const char* data = ring_ + size_t(sysconf(_SC_PAGESIZE));
  const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = page->data_tail;
  const auto copy = [&](uint64_t at, void* to, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = data[(at + i) % size];
  };
  while (tail < head) {
    perf_event_header h;
    copy(tail, &h, sizeof h);
    if (!h.size) break;
    if (h.type == PERF_RECORD_SAMPLE) {
      uint64_t address;
      copy(tail + sizeof h, &address, sizeof address);
      sample(where(size_t(address)));
    }
    tail += h.size;
  }
  __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}
#else
void Sampler::start() {}
void Sampler::stop() {}
void Sampler::drain(const std::function<void(Where)>&) {}
#endif

namespace {

size_t lanes_of(const std::string& isa) {
  if (isa.find("avx512") == 0) return 16;
  if (isa.find("avx") == 0) return 8;
  return isa == "scalar" ? 1 : 4;
}

double padded(size_t n, size_t to) { return n ? double((n + to - 1) / to * to) / double(n) : 1; }

// Multiply-adds per cycle that tiles of fewer rows than the kernel's lose: a step of the depth loads its vectors of B
// and a value of A per row, two loads and two multiply-adds a cycle, and waits four cycles for its accumulators.
double small_tiles(double rows, double mr, double vectors) {
  const auto step = [&](double r) { return std::max({r * vectors / 2, (r + vectors) / 2, 4.0}) / (r * vectors); };
  return step(rows) / std::max(step(mr), 1e-9);
}

}  // namespace

Loss split_time(const Machine& m, const std::string& isa, const Layer& l, const std::string& algorithm,
                const std::string& kernel, double ns, double weights, const size_t samples[int(Where::count)]) {
  Loss loss;
  const double element = double(size_of(l.type));
  // wider: what edges make of them
  double flops = l.flops(), layer_weights = element * double(l.weight_count()), wider = 1;
  skua_kernel_info info = {};
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && kernel == info.name) break;
  const size_t lanes = lanes_of(isa), outputs = l.out_h * l.out_w;
  if (l.multiplies()) {
    const size_t columns = l.op == Op::gemm ? l.n : l.depthwise() ? l.out_c : l.out_c / l.groups;
    double rows = l.op == Op::gemm ? double(l.m) : double(outputs);
    wider = padded(columns, lanes);
    unsigned my = 0, mx = 0;
    if (sscanf(algorithm.c_str(), "winograd_f%ux%u", &my, &mx) == 2 && my && mx) {
      // Multiplications of one dimension, with the last tile clipped; and as if there were whole tiles only.
      // even rows, of two taps, and odd ones, of one: as many products as outputs
      const bool twice = l.sh == 2;
      const size_t more = twice ? 1 : l.kh - 1;        // points beyond the outputs of a tile
      const auto of_tile = [=](size_t outputs) { return outputs + more + (twice ? outputs : 0); };
      const auto products = [=](size_t n, size_t tile) {
        return double(n / tile * of_tile(tile) + (n % tile ? of_tile(n % tile) + (twice && (tile - n % tile) % 2) : 0));
      };
      const double whole = double(l.out_h) * double(of_tile(my)) / my * (double(l.out_w) * double(of_tile(mx)) / mx),
                   clipped = products(l.out_h, my) * products(l.out_w, mx);
      flops = 2 * whole * double(l.c) * double(l.out_c);
      layer_weights *= double(of_tile(my) * of_tile(mx)) / double(l.kh * l.kw);  // as they are streamed: transformed
      wider *= clipped / whole;
      rows = double((l.out_h + my - 1) / my * ((l.out_w + mx - 1) / mx));
    }
    if (!l.depthwise() && info.mr && info.nr) {
      const double groups = ceil(rows / info.mr);
      wider *= small_tiles(rows / groups, info.mr,
                           double(std::min<size_t>(info.nr, (columns + lanes - 1) / lanes * lanes)) / double(lanes));
    }
  }
  const double compute = flops / m.peak(isa, l.type);
  const Level *from = m.level_of(weights),
              *maps = m.level_of(element * double(l.in_count() + l.second_count() + l.out_count()));
  double traffic = 0;
  if (from) traffic += layer_weights / from->read;
  if (maps)
    traffic += element * double(l.in_count() + l.second_count() + l.out_count()) / std::max(maps->read, maps->copy);
  double left = 1;
  const auto take = [&](double share) {
    share = std::clamp(share, 0.0, left);
    left -= share;
    return share;
  };
  size_t all = 0;
  for (int i = 0; i < int(Where::count); ++i) all += i == int(Where::outside) ? 0 : samples[i];
  loss.samples = all;
  loss.compute = take(compute / ns);
  if (all >= 20) {
    const auto share = [&](Where w) { return double(samples[int(w)]) / double(all); };
    loss.copy = take(share(Where::copy));
    loss.transform = take(share(Where::transform));
    loss.driver = take(share(Where::driver));
  }
  loss.bandwidth = take((traffic - compute) / ns);
  loss.edge = take((std::max(compute * wider, traffic) - std::max(compute, traffic)) / ns);
  loss.kernel = left;
  return loss;
}

}  // namespace bench
