// skua_op_tune and the tuning cache: what is measured is used, kept and found again; files of any content are harmless.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

// A folder that goes away with its files.
struct Folder {
  char path[64] = "/tmp/skua-tune-XXXXXX";
  Folder() { EXPECT_NE(mkdtemp(path), nullptr); }
  ~Folder() {
    for (const char* name : {"cache", "cache.new"}) unlink(file(name).c_str());
    rmdir(path);
  }
  std::string file(const char* name = "cache") const { return std::string(path) + "/" + name; }
};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Memory that ends after `until` blocks.
struct Scarce {
  size_t until = SIZE_MAX, taken = 0;
  std::map<void*, size_t> live;
};

struct Cached {
  skua_context* context = nullptr;
  std::string log, info;  // warnings; the rest
  Scarce memory;
  skua_status status;
  explicit Cached(const std::string& path, const char* filter = nullptr, const char* isa = nullptr,
                  size_t until = SIZE_MAX) {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.tuning_cache = path.empty() ? nullptr : path.c_str();
    o.kernel_filter = filter;
    o.max_isa = isa;
    o.log = [](void* to, skua_log_level level, const char* text) {
      (level == SKUA_LOG_WARNING ? static_cast<Cached*>(to)->log : static_cast<Cached*>(to)->info) +=
          std::string(text) + "\n";
    };
    o.log_ctx = this;
    memory.until = until;
    o.allocator = {&memory,
                   [](void* ctx, size_t size, size_t align) -> void* {
                     auto& self = *static_cast<Scarce*>(ctx);
                     void* p = nullptr;
                     if (self.taken++ >= self.until ||
                         posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size))
                       return nullptr;
                     self.live[p] = size;
                     return p;
                   },
                   [](void* ctx, void* p, size_t size) {
                     auto& self = *static_cast<Scarce*>(ctx);
                     EXPECT_EQ(self.live[p], size);
                     self.live.erase(p);
                     std::free(p);
                   }};
    status = skua_context_create(&o, &context);
  }
  ~Cached() {
    skua_context_destroy(context);
    EXPECT_EQ(memory.live.size(), 0u) << "leaked";
  }
  Cached(const Cached&) = delete;
};

// A product of two inputs and a convolution, with several candidates each.
constexpr size_t kM = 37, kN = 96, kK = 40;
skua_op* product(skua_context* context) {
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  skua_op* op = nullptr;
  SKUA_EXPECT_OK(skua_gemm_create(context, &d, nullptr, nullptr, &op));
  return op;
}
skua_op* convolution(skua_context* context, skua_numerics numerics = SKUA_NUMERICS_DEFAULT) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.in_channels = d.out_channels = 32;
  d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  d.numerics = numerics;
  skua_op* op = nullptr;
  SKUA_EXPECT_OK(skua_conv2d_create(context, &d, constants(), nullptr, &op));
  return op;
}
using Inputs = std::vector<skua_tensor>;
const Inputs product_input = {shape({kM, kK}), shape({kK, kN})}, convolution_input = {shape({1, 14, 15, 32})};

skua_status tune(skua_op* op, const Inputs& inputs, const skua_executor* executor = nullptr) {
  skua_tune_options o = SKUA_TUNE_OPTIONS_INIT;
  o.max_milliseconds = 1;
  o.executor = executor;
  return skua_op_tune(op, inputs.data(), inputs.size(), &o);
}

std::string explain(const skua_plan* plan) {
  char text[8192];
  skua_plan_explain(plan, text, sizeof text);
  return text;
}
std::string explain(const skua_op* op, const Inputs& inputs) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, inputs.data(), inputs.size(), nullptr, 0, &plan));
  const std::string text = explain(plan);
  skua_plan_destroy(plan);
  return text;
}

std::string choice(const skua_op* op, const Inputs& inputs) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, inputs.data(), inputs.size(), nullptr, 0, &plan));
  const std::string text = explain(plan);
  std::string all = std::string(skua_plan_algorithm(plan)) + " " + skua_plan_kernel(plan) +
                    (text.find("chosen by measurement") != std::string::npos ? " measured" : "");
  skua_plan_destroy(plan);
  return all;
}

size_t lines(const std::string& text) { return size_t(std::count(text.begin(), text.end(), '\n')); }

TEST(Tune, ChoiceIsKeptAndFoundAgain) {
  Folder folder;
  std::string chosen[2];
  {
    Cached first(folder.file());
    EXPECT_NE(first.info.find("does not exist"), std::string::npos) << first.info;
    Op gemm, conv;
    gemm.op = product(first.context);
    conv.op = convolution(first.context);
    SKUA_EXPECT_OK(tune(gemm.op, product_input));
    SKUA_EXPECT_OK(tune(conv.op, convolution_input));
    chosen[0] = choice(gemm, product_input);
    chosen[1] = choice(conv, convolution_input);
    const std::string text = content(folder.file());
    EXPECT_GE(lines(text), 3u) << text;  // also the convolution's packed format
    EXPECT_NE(text.find(skua_version_string()), std::string::npos);
    ASSERT_EQ(chmod(folder.file().c_str(), 0600), 0);
    SKUA_EXPECT_OK(tune(conv.op, convolution_input));  // again: replaces
    struct stat mode;
    EXPECT_EQ(stat(folder.file().c_str(), &mode), 0);
    EXPECT_EQ(mode.st_mode & 0777, 0600u);
    const std::string again = content(folder.file());
    for (size_t at = again.find('\n') + 1; at < again.size(); at = again.find('\n', at) + 1)
      EXPECT_EQ(again.find(again.substr(at, 16), at + 1), std::string::npos) << again;
    chosen[1] = choice(conv, convolution_input);
  }
  Cached second(folder.file());
  EXPECT_EQ(second.log, "");
  const size_t remembered = lines(content(folder.file())) - 1;
  EXPECT_EQ(second.info, "tuning cache " + folder.file() + ": read " + std::to_string(remembered) + " choices\n");
  Op gemm, conv;
  gemm.op = product(second.context);
  conv.op = convolution(second.context);
  EXPECT_EQ(choice(gemm, product_input), chosen[0]);
  EXPECT_EQ(choice(conv, convolution_input), chosen[1]);
}

// Rewrites the candidate of every entry and its checksum: FNV-1a, as the file format says.
std::string with_candidate(const std::string& text, unsigned index, const std::string& name = "") {
  std::istringstream in(text);
  std::ostringstream out;
  std::string line;
  std::getline(in, line);
  out << line << "\n";
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string key, old, threads, ns, op, algorithm, kernel;
    fields >> key >> old >> threads >> ns >> op >> algorithm >> kernel;
    std::string fresh = key + " " + std::to_string(index) + " " + threads + " " + ns + " " +
                        (name.empty() ? op + " " + algorithm + " " + kernel : name);
    uint64_t h = 0xcbf29ce484222325;
    for (unsigned char c : fresh) h = (h ^ c) * 0x100000001b3;
    h ^= h >> 32;
    char sum[16];
    snprintf(sum, sizeof sum, " #%08x", unsigned(h));
    out << fresh << sum << "\n";
  }
  return out.str();
}

// Every candidate, through a file that asks for it: the same bits as a context whose filter names the kernel.
TEST(Tune, EveryCandidateComputesTheSame) {
  Folder folder;
  Rng rng(3);
  const Data a = make(product_input[0], rng), b = make(product_input[1], rng);
  {
    Cached c(folder.file());
    Op gemm;
    gemm.op = product(c.context);
    SKUA_EXPECT_OK(tune(gemm.op, product_input));
  }
  const std::string text = content(folder.file());
  size_t used = 0;
  for (const skua_kernel_info& k : kernels("gemm_f32_"))
    for (unsigned index = 1; index <= 40; ++index) {
      write(folder.file(), with_candidate(text, index, std::string("gemm in_place ") + k.name));
      Cached c(folder.file()), plain("", k.name);
      Op tuned, forced;
      tuned.op = product(c.context);
      if (choice(tuned, product_input) != std::string("in_place ") + k.name + " measured") continue;
      ++used;
      forced.op = product(plain.context);
      expect_same_bits(run(tuned, {a, b})[0], run(forced, {a, b})[0]);
    }
  EXPECT_GE(used, std::min<size_t>(isas().size(), 2));
}

// The packed format is measured too, with operators that have made-up weights, and create finds it again when it has
// the hint.
TEST(Tune, PackedFormat) {
  Folder folder;
  Rng rng(5);
  const Data x = make(shape({2, 14, 15, 24}), rng), a = make(shape({9, 33}), rng);
  const auto hinted_convolution = [](skua_context* context) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.kernel_h = d.kernel_w = 3;
    d.in_channels = 24, d.out_channels = 40;
    d.numerics = SKUA_NUMERICS_STRICT;
    d.hint_in_h = 14, d.hint_in_w = 15;
    skua_op* op = nullptr;
    SKUA_EXPECT_OK(skua_conv2d_create(context, &d, constants(), constants() + 7, &op));
    return op;
  };
  const auto hinted_product = [](skua_context* context) {
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.n = 70, d.k = 33, d.hint_m = 9;
    skua_op* op = nullptr;
    SKUA_EXPECT_OK(skua_gemm_create(context, &d, constants(), constants() + 7, &op));
    return op;
  };
  std::string made[2];
  {
    Cached c(folder.file());
    Op conv, gemm;
    conv.op = hinted_convolution(c.context);
    gemm.op = hinted_product(c.context);
    SKUA_EXPECT_OK(tune(conv.op, {x.t}));
    SKUA_EXPECT_OK(tune(gemm.op, {a.t}));
    Op again, again_gemm;
    again.op = hinted_convolution(c.context);
    again_gemm.op = hinted_product(c.context);
    made[0] = choice(again, {x.t});
    made[1] = choice(again_gemm, {a.t});
  }
  const std::string text = content(folder.file());
  {
    Cached c(folder.file());
    Op conv, gemm;
    conv.op = hinted_convolution(c.context);
    gemm.op = hinted_product(c.context);
    EXPECT_EQ(choice(conv, {x.t}), made[0]);
    EXPECT_EQ(choice(gemm, {a.t}), made[1]);
  }
  Context plain;
  Op conv, gemm;
  conv.op = hinted_convolution(plain);
  gemm.op = hinted_product(plain);
  const std::vector<double> want = dense_double(run(conv, {x})[0]), want_product = dense_double(run(gemm, {a})[0]);
  std::map<std::string, int> seen;
  for (unsigned index = 1; index <= 30; ++index) {  // every format, and numbers behind the last
    write(folder.file(), with_candidate(text, index));
    Cached c(folder.file());
    Op other, other_product;
    other.op = hinted_convolution(c.context);
    other_product.op = hinted_product(c.context);
    ++seen[choice(other, {x.t})];
    expect_close(run(other, {x})[0], want, 1e-3);
    expect_close(run(other_product, {a})[0], want_product, 1e-3);
  }
  EXPECT_GE(seen.size(), std::min<size_t>(isas().size(), 2));
}

// Under another cap, filter or numerics nothing that was measured applies; a choice that would break them is not taken.
TEST(Tune, CapFilterAndNumericsAreKept) {
  Folder folder;
  {
    Cached c(folder.file());
    Op op;
    op.op = convolution(c.context);
    SKUA_EXPECT_OK(tune(op.op, convolution_input));
  }
  const std::string text = content(folder.file());
  for (const char* isa : isas())
    for (unsigned index = 1; index < 40; ++index) {
      write(folder.file(), with_candidate(text, index));
      Cached capped(folder.file(), nullptr, isa), filtered(folder.file(), "winograd_f2x2", isa),
          plain("", nullptr, isa), plain_filtered("", "winograd_f2x2", isa);
      Op a, b, c, d, e;
      a.op = convolution(capped.context);
      b.op = convolution(plain.context);
      c.op = convolution(filtered.context);
      d.op = convolution(plain_filtered.context);
      e.op = convolution(capped.context, SKUA_NUMERICS_STRICT);
      if (isa != isas().back()) { EXPECT_EQ(choice(a, convolution_input), choice(b, convolution_input)); }
      EXPECT_EQ(choice(c, convolution_input), choice(d, convolution_input));
      EXPECT_EQ(choice(e, convolution_input).find("winograd"), std::string::npos);
    }
}

TEST(Tune, FilesOfAnyContentAreHarmless) {
  Folder folder;
  std::string model;
  {
    Cached c(folder.file());
    Op gemm, conv;
    gemm.op = product(c.context);
    conv.op = convolution(c.context);
    SKUA_EXPECT_OK(tune(gemm.op, product_input));
    SKUA_EXPECT_OK(tune(conv.op, convolution_input));
  }
  const std::string good = content(folder.file());
  const size_t header = good.find('\n');
  const std::string version = skua_version_string();
  auto reason = [&](const std::string& text) {
    write(folder.file(), text);
    Cached c(folder.file());
    SKUA_EXPECT_OK(c.status);
    Op op;
    op.op = product(c.context);
    choice(op, product_input);
    return c.log;
  };
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(reason(good), "");
  EXPECT_EQ(reason(""), "");
  {
    Cached c(folder.file());
    EXPECT_NE(c.info.find("is empty"), std::string::npos) << c.info;
  }
  EXPECT_NE(reason(replaced(version, "0.0.1")).find("library version is \"0.0.1\", here it is \"" + version + "\""),
            std::string::npos);
  EXPECT_NE(reason(replaced(" | " + version + " | ", " | " + version + " | A64FX ")).find("its CPU is \"A64FX "),
            std::string::npos);
  EXPECT_NE(reason(replaced("| scalar", "| abacus")).find("its instruction sets is \"abacus"), std::string::npos);
  EXPECT_NE(reason(replaced(" | scalar", "")).find("its CPU is"), std::string::npos);
  EXPECT_NE(reason(replaced(" | " + version, " |" + version)).find("its format is"), std::string::npos);
  EXPECT_NE(reason(replaced("cache 1", "cache 9"))
                .find("its format is \"skua tuning cache 9\", here it is \"skua tuning cache 1\""),
            std::string::npos);
  EXPECT_NE(reason("GIF89a").find("not a tuning cache"), std::string::npos);
  EXPECT_NE(reason(std::string(100, '\0')).find("not a tuning cache"), std::string::npos);
  EXPECT_NE(reason(good.substr(0, good.size() - 1)).find("damaged"), std::string::npos);
  EXPECT_NE(reason(good.substr(0, header / 2)).find("ignored"), std::string::npos);
  EXPECT_NE(reason(good + std::string(3000, 'x') + "\n")
                .find(": line " + std::to_string(lines(good) + 1) + " is damaged; ignored"),
            std::string::npos);
  EXPECT_NE(reason(good + "x\ny\n").find(": 2 damaged lines ignored, line " + std::to_string(lines(good) + 1)),
            std::string::npos);
  EXPECT_NE(reason(std::string(5 << 20, 'x')).find("larger"), std::string::npos);
  Rng rng(11);
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int n = rng.integer(1, 4); n > 0 && !text.empty(); --n) {
      const size_t at = rng.next() % text.size(), length = size_t(rng.integer(1, 20));
      switch (rng.integer(0, 4)) {
        case 0: text[at] = char(rng.next()); break;
        case 1: text.resize(at); break;
        case 2: text.erase(at, length); break;
        case 3: text.insert(at, std::string(length, char(rng.next()))); break;
        default: text.insert(at, text.substr(rng.next() % text.size(), length)); break;
      }
    }
    const std::string log = reason(text);
    EXPECT_TRUE(text.find(good) == 0 || good.find(text) == 0 || log != "") << text;
    if (i % 20) continue;
    Cached c(folder.file());  // and is written anew
    Op op;
    op.op = product(c.context);
    SKUA_EXPECT_OK(tune(op.op, product_input));
    EXPECT_EQ(reason(content(folder.file())), "");
  }
}

TEST(Tune, PathsThatCannotBeUsed) {
  Folder folder;
  for (const std::string& path : {folder.file("none") + "/cache", std::string(folder.path), std::string("/dev/null"),
                                  std::string("/proc/version")}) {
    SCOPED_TRACE(path);
    Cached c(path);
    SKUA_EXPECT_OK(c.status);
    Op op;
    op.op = product(c.context);
    SKUA_EXPECT_OK(tune(op.op, product_input));
    EXPECT_NE(c.log, "");
    choice(op, product_input);
  }
}

TEST(Tune, AllocatorFailsAtTheNthCall) {
  Folder folder;
  for (size_t until = 0, calls = 1; until <= calls; ++until) {
    unlink(folder.file().c_str());
    {
      Cached one(folder.file());
      Op op;
      op.op = convolution(one.context);
      SKUA_EXPECT_OK(tune(op.op, convolution_input));
    }
    Cached c(folder.file(), nullptr, nullptr, until ? until - 1 : SIZE_MAX);
    skua_status status = c.status;
    if (status == SKUA_STATUS_OK) {
      const size_t limit = c.memory.until;
      c.memory.until = SIZE_MAX;
      const size_t before = c.memory.taken;
      Op op;
      op.op = product(c.context);
      c.memory.until = limit == SIZE_MAX ? limit : limit + c.memory.taken - before;
      status = tune(op.op, product_input);
      if (!until) calls = c.memory.taken - (c.memory.taken ? 2 : 0);
    } else {
      EXPECT_EQ(c.context, nullptr);
    }
    EXPECT_EQ(status, until ? status == SKUA_STATUS_OK ? SKUA_STATUS_OK : SKUA_STATUS_OUT_OF_MEMORY : SKUA_STATUS_OK)
        << skua_error_text();
    if (until && until < 8) { EXPECT_EQ(status, SKUA_STATUS_OUT_OF_MEMORY) << until; }
  }
}

// Text belongs to the last failing call, although candidates that do not apply fail inside.
TEST(Tune, SuccessLeavesTheErrorTextAlone) {
  Cached c("");
  Op op, conv;
  op.op = product(c.context);
  conv.op = convolution(c.context);
  EXPECT_EQ(skua_op_tune(nullptr, nullptr, 0, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  const std::string before = skua_error_text();
  SKUA_EXPECT_OK(tune(op.op, product_input));
  EXPECT_EQ(skua_error_text(), before);
  SKUA_EXPECT_OK(tune(conv.op, convolution_input));
  EXPECT_EQ(skua_error_text(), before);
}

TEST(Tune, EmptyShapeIsNotRemembered) {
  Folder folder;
  Cached c(folder.file());
  Op gemm, conv;
  gemm.op = product(c.context);
  conv.op = convolution(c.context);
  SKUA_EXPECT_OK(tune(gemm.op, {shape({0, kK}), product_input[1]}));
  SKUA_EXPECT_OK(tune(conv.op, {shape({0, 14, 15, 32})}));
  EXPECT_LE(lines(content(folder.file())), 1u) << content(folder.file());
  EXPECT_NE(c.info.find("gemm: the outputs are empty, nothing to tune"), std::string::npos) << c.info;
}

// What replaces the model's choice differs from it in more than noise; explain and the log tell who chose.
TEST(Tune, TheSamePlanIsNoCandidate) {
  const auto chosen = [](const std::string& text) {
    const size_t line = text.find('\n'), next = text.find('\n', line + 1);
    return text.substr(0, line) + text.substr(next, text.find("candidates:") - next);
  };
  const auto by = [](const std::string& text) {
    const size_t line = text.find('\n') + 1;
    return text.substr(line, text.find('\n', line) - line);
  };
  for (int i = 0; i < 30; ++i) {
    Cached c("");
    Op gemm, conv;
    gemm.op = product(c.context);
    conv.op = convolution(c.context);
    for (const auto& [op, inputs] :
         {std::pair<skua_op*, const Inputs&>{gemm.op, product_input}, {conv.op, convolution_input}}) {
      const std::string model = explain(op, inputs);
      EXPECT_EQ(by(model), "  chosen by the model");
      c.info = "";
      SKUA_EXPECT_OK(tune(op, inputs));
      const std::string tuned = explain(op, inputs), said = c.info.substr(0, c.info.find('\n'));
      if (chosen(tuned) == chosen(model)) {
        EXPECT_EQ(by(tuned), "  the model's choice, confirmed by measurement");
        EXPECT_TRUE(said.find("candidates, the model's choice stays") != std::string::npos ||
                    said.find("one candidate") != std::string::npos)
            << c.info;
      } else {
        EXPECT_EQ(by(tuned), "  chosen by measurement");
        EXPECT_NE(said.find("% faster than the model's choice"), std::string::npos) << c.info;
      }
    }
  }
}

TEST(Tune, ArgumentsAndOperatorsWithoutCandidates) {
  Cached c("");
  Op op;
  op.op = product(c.context);
  const Inputs wrong = {shape({3, kK + 1}), product_input[1]};
  EXPECT_EQ(tune(op.op, wrong), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_op_tune(op.op, nullptr, 2, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_op_tune(nullptr, product_input.data(), 2, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  skua_tune_options o = SKUA_TUNE_OPTIONS_INIT;
  o.struct_size = 3;
  EXPECT_EQ(skua_op_tune(op.op, product_input.data(), 2, &o), SKUA_STATUS_INVALID_ARGUMENT);
  const skua_executor broken = {nullptr, 2, nullptr};
  EXPECT_EQ(tune(op.op, product_input, &broken), SKUA_STATUS_INVALID_ARGUMENT);
  SKUA_EXPECT_OK(tune(op.op, {shape({0, kK}), product_input[1]}));
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Cached plain("");
    Op any;
    SKUA_EXPECT_OK(sample.create(plain.context, &any));
    skua_tune_options quick = SKUA_TUNE_OPTIONS_INIT;
    quick.max_milliseconds = 1;
    SKUA_EXPECT_OK(skua_op_tune(any.op, sample.inputs.data(), sample.inputs.size(), &quick));
    EXPECT_NE(plain.info, "");
    if (std::string(sample.name).find("inverted_residual") != std::string::npos) {
      EXPECT_EQ(plain.info, "inverted_residual: one candidate, nothing to tune\n");
    }
    run(any, sample.values());
  }
}

}  // namespace
