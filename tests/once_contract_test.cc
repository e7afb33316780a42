// The edges of the interface that do not depend on the instruction set: names, contexts, and every field of every
// descriptor out of range.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

TEST(Names, StatusesTypesVersion) {
  const char* const statuses[] = {"OK",        "INVALID_ARGUMENT", "UNSUPPORTED",  "OUT_OF_MEMORY", "INCOMPATIBLE_BLOB",
                                  "NO_DEVICE", "DEVICE_LOST",      "DRIVER_ERROR", "IO_ERROR"};
  for (int i = 0; i < 9; ++i) EXPECT_STREQ(skua_status_name(skua_status(i)), statuses[i]);
  for (int i : {9, 15}) EXPECT_STREQ(skua_status_name(skua_status(i)), "UNKNOWN");
  const struct {
    skua_dtype type;
    const char* name;
    uint32_t bits;
  } types[] = {{SKUA_DTYPE_F32, "f32", 32}, {SKUA_DTYPE_F16, "f16", 16}, {SKUA_DTYPE_BF16, "bf16", 16},
               {SKUA_DTYPE_S8, "s8", 8},    {SKUA_DTYPE_U8, "u8", 8},    {SKUA_DTYPE_S4, "s4", 4},
               {SKUA_DTYPE_S32, "s32", 32}, {skua_dtype(7), "?", 0}};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(int(types[i].type), i) << "stored in blobs: never changes";
    EXPECT_STREQ(skua_dtype_name(types[i].type), types[i].name);
    EXPECT_EQ(skua_dtype_bits(types[i].type), types[i].bits);
  }
  EXPECT_EQ(skua_version(), uint32_t(SKUA_VERSION_MAJOR << 16 | SKUA_VERSION_MINOR << 8 | SKUA_VERSION_PATCH));
  EXPECT_STREQ(skua_version_string(), SKUA_VERSION_STRING);
  EXPECT_EQ(std::string(SKUA_VERSION_STRING), std::to_string(SKUA_VERSION_MAJOR) + "." +
                                                  std::to_string(SKUA_VERSION_MINOR) + "." +
                                                  std::to_string(SKUA_VERSION_PATCH));
}

skua_status create(const skua_context_options& options, std::string* isa = nullptr) {
  skua_context* context = nullptr;
  const skua_status status = skua_context_create(&options, &context);
  EXPECT_EQ(status == SKUA_STATUS_OK, context != nullptr);
  if (isa) *isa = skua_context_isa(context);
  skua_context_destroy(context);
  return status;
}

void expect_text(const std::string& text) {
  EXPECT_NE(std::strstr(skua_error_text(), text.c_str()), nullptr)
      << "\"" << skua_error_text() << "\" does not say \"" << text << "\"";
}

// Sets an environment variable and puts it back.
struct Environment {
  Environment(const char* name, const char* value)
      : name_(name), had_(std::getenv(name)), old_(had_ ? std::getenv(name) : "") {
    if (value) setenv(name, value, 1);
    else unsetenv(name);
  }
  ~Environment() {
    if (had_) setenv(name_, old_.c_str(), 1);
    else unsetenv(name_);
  }
  const char* name_;
  bool had_;
  std::string old_;
};

TEST(ContextOptions, OutOfRange) {
  EXPECT_EQ(skua_context_create(nullptr, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("out");
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  for (size_t size : {size_t(0), sizeof o - 1, sizeof o + 8}) {
    o.struct_size = size;
    EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("struct_size");
  }
  o = SKUA_CONTEXT_OPTIONS_INIT;
  o.allocator.alloc = [](void*, size_t, size_t) -> void* { return nullptr; };
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("allocator");
  o = SKUA_CONTEXT_OPTIONS_INIT;
  o.allocator.free = [](void*, void*, size_t) {};
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("allocator");
  o = SKUA_CONTEXT_OPTIONS_INIT;
  o.device.api = skua_device_api(3);
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("device.api");
  for (skua_device_api api : {SKUA_DEVICE_API_OPENCL, SKUA_DEVICE_API_VULKAN}) {
    o.device = {api, 99};
    EXPECT_EQ(create(o), SKUA_STATUS_NO_DEVICE);
    expect_text(api == SKUA_DEVICE_API_OPENCL ? "OpenCL" : "Vulkan");
  }
  o.device = {SKUA_DEVICE_API_CPU, 1};
  EXPECT_EQ(create(o), SKUA_STATUS_NO_DEVICE);
  o = SKUA_CONTEXT_OPTIONS_INIT;
  const std::string longest(63, '*'), longer(64, '*'), path(255, 'p'), longer_path(256, 'p');
  o.kernel_filter = longest.c_str();
  EXPECT_EQ(create(o), SKUA_STATUS_OK);
  o.kernel_filter = longer.c_str();
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("kernel_filter");
  o.kernel_filter = nullptr;
  o.tuning_cache = path.c_str();
  EXPECT_EQ(create(o), SKUA_STATUS_OK);
  o.tuning_cache = longer_path.c_str();
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("tuning_cache");
}

TEST(ContextOptions, Isa) {
  Environment none("SKUA_MAX_ISA", nullptr);
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  const std::vector<const char*> usable = isas();
  std::string isa;
  SKUA_EXPECT_OK(create(o, &isa));
  EXPECT_EQ(isa, usable.back());
  // A set that adds arithmetic in another type stands on another one, which is named.
  const auto half = [](const std::string& name) {
    for (const char* type : {"fp16", "bf16", "vnni", "vbmi", "amx", "dot", "i8mm"})
      if (name.find(type) != std::string::npos) return true;
    return false;
  };
  for (size_t i = 0; i < skua_isa_count(); ++i) {
    skua_isa_info info;
    SKUA_EXPECT_OK(skua_isa_at(i, &info));
    o.max_isa = info.name;
    SKUA_EXPECT_OK(create(o, &isa));
    EXPECT_EQ(isa == info.name, info.compiled && info.detected && !half(info.name))
        << isa << " under the cap " << info.name;
    o.max_isa = nullptr;
    Environment cap("SKUA_MAX_ISA", info.name);
    std::string same;
    SKUA_EXPECT_OK(create(o, &same));
    EXPECT_EQ(same, isa);
    o.max_isa = "scalar";  // the option is stronger than the environment
    SKUA_EXPECT_OK(create(o, &same));
    EXPECT_EQ(same, "scalar");
  }
  for (const char* name : {"", "AVX2", "avx", "avx10", "scalar ",
                           "a name that is longer than any that anybody would ever give to an instruction set"}) {
    o.max_isa = name;
    EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT) << name;
    expect_text("max_isa");
    for (size_t i = 0; i < skua_isa_count(); ++i) {
      skua_isa_info info;
      SKUA_EXPECT_OK(skua_isa_at(i, &info));
      expect_text(info.name);  // the text lists the names
    }
  }
  o.max_isa = nullptr;
  Environment bad("SKUA_MAX_ISA", "mmx");
  EXPECT_EQ(create(o), SKUA_STATUS_INVALID_ARGUMENT);
  expect_text("SKUA_MAX_ISA");
}

std::string gemm_kernel_with(const char* filter, std::string* said = nullptr) {
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  o.kernel_filter = filter;
  skua_context* context = nullptr;
  SKUA_EXPECT_OK(skua_context_create(&o, &context));
  const skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  skua_op* op = nullptr;
  SKUA_EXPECT_OK(skua_gemm_create(context, &d, nullptr, nullptr, &op));
  const skua_tensor shapes[] = {shape({50, 60}), shape({60, 70})};
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, shapes, 2, nullptr, 0, &plan));
  const std::string name = skua_plan_kernel(plan);
  if (said) {
    said->resize(skua_plan_explain(plan, nullptr, 0) + 1);
    skua_plan_explain(plan, said->data(), said->size());
  }
  skua_plan_destroy(plan);
  skua_op_destroy(op);
  skua_context_destroy(context);
  return name;
}

TEST(ContextOptions, KernelFilter) {
  Environment none("SKUA_KERNEL", nullptr);
  const std::string free_choice = gemm_kernel_with(nullptr);
  for (const skua_kernel_info& tile : kernels("gemm_f32_")) {
    EXPECT_EQ(gemm_kernel_with(tile.name), tile.name);
    const std::string name = tile.name;
    std::string middle = "*";
    middle.append(name, 4, name.size() - 8).append(1, '*');
    const std::string chosen = gemm_kernel_with(middle.c_str());  // an instruction set above may have the same tile
    EXPECT_NE(chosen.find(middle.substr(1, middle.size() - 2)), std::string::npos) << middle << " gives " << chosen;
    std::string marked = name;
    marked[2] = '?';
    EXPECT_EQ(gemm_kernel_with(marked.c_str()), tile.name) << marked;
    Environment filter("SKUA_KERNEL", tile.name);
    EXPECT_EQ(gemm_kernel_with(nullptr), tile.name);
    EXPECT_EQ(gemm_kernel_with("*"), free_choice);  // the option is stronger than the environment
  }
  {
    const Environment filter("SKUA_KERNEL", std::string(64, '*').c_str());
    skua_context* context = nullptr;
    EXPECT_EQ(skua_context_create(nullptr, &context), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_STREQ(skua_error_text(), "context: environment SKUA_KERNEL has 64 characters, at most 63 are possible");
  }
  std::string text;
  const std::vector<skua_kernel_info> tiles = kernels("gemm_f32_");
  gemm_kernel_with(tiles[0].name, &text);
  const std::string left = std::string("  kernel filter \"") + tiles[0].name + "\": leaves 1 of ";
  ASSERT_NE(text.find(left), std::string::npos) << text;
  EXPECT_EQ(text.find("chosen by the kernel filter") != std::string::npos,
            std::atoi(text.c_str() + text.find(left) + left.size()) > 1)
      << text;
  gemm_kernel_with("no such kernel", &text);
  EXPECT_NE(text.find("chosen by the model\n  kernel filter \"no such kernel\": matches nothing here, ignored\n"),
            std::string::npos)
      << text;
  gemm_kernel_with("", &text);
  EXPECT_EQ(text.find("kernel filter"), std::string::npos) << text;
  for (const char* nothing : {"no such kernel", "conv_*", "gemm", "gemm_f32", "?", ""})
    EXPECT_EQ(gemm_kernel_with(nothing), free_choice) << nothing;
}

TEST(Devices, TheCpuIsFirst) {
  EXPECT_GE(skua_device_list(nullptr, 0), 1u);
  skua_device_info info, same;
  std::memset(&info, 0xff, sizeof info);
  EXPECT_GE(skua_device_list(&info, 1), 1u);
  EXPECT_EQ(info.device.api, SKUA_DEVICE_API_CPU);
  EXPECT_EQ(info.device.index, 0u);
  EXPECT_GT(std::strlen(info.name), 0u);
  EXPECT_NE(std::strstr(info.features, "scalar"), nullptr) << info.features;
  EXPECT_GT(info.compute_units, 0u);
  Context context;
  SKUA_EXPECT_OK(skua_context_device(context, &same));
  EXPECT_STREQ(same.name, info.name);
  EXPECT_EQ(skua_context_device(context, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_context_device(nullptr, &same), SKUA_STATUS_INVALID_ARGUMENT);
}

// What only contexts on a GPU have.
TEST(Devices, GpuCallsSayThatThereIsNone) {
  Context context;
  auto* junk = reinterpret_cast<void*>(&context);
  auto* buffer = static_cast<skua_device_buffer*>(junk);
  EXPECT_EQ(skua_device_buffer_create(context, 16, &buffer), SKUA_STATUS_UNSUPPORTED);
  EXPECT_EQ(buffer, nullptr);
  buffer = static_cast<skua_device_buffer*>(junk);
  EXPECT_EQ(skua_device_buffer_import(context, 1, 0, 16, &buffer), SKUA_STATUS_UNSUPPORTED);
  EXPECT_EQ(buffer, nullptr);
  // Nothing comes of NULL: a build without GPU backends says that it has none, others which argument it is.
  const auto refused = [](skua_status status) {
    return status == SKUA_STATUS_UNSUPPORTED || status == SKUA_STATUS_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused(skua_device_buffer_write(nullptr, 0, junk, 1)));
  EXPECT_TRUE(refused(skua_device_buffer_read(nullptr, 0, junk, 1)));
  auto* stream = static_cast<skua_stream*>(junk);
  EXPECT_EQ(skua_stream_create(context, &stream), SKUA_STATUS_UNSUPPORTED);
  EXPECT_EQ(stream, nullptr);
  EXPECT_TRUE(refused(skua_plan_enqueue(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr)));
  EXPECT_TRUE(refused(skua_stream_submit(nullptr)));
  EXPECT_TRUE(refused(skua_stream_wait(nullptr)));
  auto* event = static_cast<skua_event*>(junk);
  EXPECT_TRUE(refused(skua_event_record(nullptr, &event)));
  EXPECT_EQ(event, nullptr);
  double nanoseconds = 0;
  EXPECT_TRUE(refused(skua_stream_wait_event(nullptr, nullptr)));
  EXPECT_TRUE(refused(skua_event_nanoseconds(nullptr, nullptr, &nanoseconds)));
  skua_device_buffer_destroy(nullptr);
  skua_stream_destroy(nullptr);
  skua_event_destroy(nullptr);
}

TEST(Null, Handles) {
  skua_context_destroy(nullptr);
  skua_op_destroy(nullptr);
  skua_plan_destroy(nullptr);
  EXPECT_STREQ(skua_context_isa(nullptr), "");
  EXPECT_EQ(skua_op_plan_size(nullptr), 0u);
  EXPECT_EQ(skua_op_input_count(nullptr), 0u);
  EXPECT_EQ(skua_op_output_count(nullptr), 0u);
  EXPECT_EQ(skua_plan_workspace(nullptr, 1), 0u);
  EXPECT_EQ(skua_plan_explain(nullptr, nullptr, 0), 0u);
  char text[4] = "abc";
  EXPECT_EQ(skua_plan_explain(nullptr, text, 4), 0u);
  EXPECT_STREQ(text, "");
  EXPECT_STREQ(skua_plan_algorithm(nullptr), "");
  EXPECT_STREQ(skua_plan_kernel(nullptr), "");
  skua_tensor t = shape({1});
  skua_plan* plan = nullptr;
  skua_buffer buffer = skua_host_buffer(&t);
  EXPECT_EQ(skua_op_plan(nullptr, &t, 1, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_op_plan_init(nullptr, &t, 1, nullptr, 0, &t, 16, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_plan_outputs(nullptr, &t, 1), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_plan_run(nullptr, &buffer, 1, &buffer, 1, nullptr, 0, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_op_tune(nullptr, &t, 1, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_kernel_at(0, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_isa_at(0, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  skua_isa_info isa;
  EXPECT_EQ(skua_isa_at(skua_isa_count(), &isa), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_gemm_f32(nullptr, 1, 1, 1, nullptr, 1, nullptr, 1, nullptr, 1, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
}

TEST(Null, EveryCreateAndPlan) {
  Context context;
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    skua_op* op = nullptr;
    EXPECT_EQ(sample.create(context, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("out");
    op = reinterpret_cast<skua_op*>(&context);
    EXPECT_EQ(sample.create(nullptr, &op), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(op, nullptr);
    expect_text("context");
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    EXPECT_EQ(skua_op_plan(p.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, nullptr),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_plan_outputs(p.plan, nullptr, p.outputs.size()), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_plan_outputs(p.plan, p.outputs.data(), p.outputs.size() + 1), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("n_outputs");
    skua_plan* plan = nullptr;
    EXPECT_EQ(
        skua_op_plan(p.op, sample.inputs.data(), sample.inputs.size(), p.outputs.data(), p.outputs.size() + 1, &plan),
        SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("n_outputs");
    EXPECT_EQ(plan, nullptr);
  }
}

TEST(Null, Descriptors) {
  Context context;
  skua_op* op = nullptr;
  auto refused = [&](skua_status status) {
    if (std::strstr(skua_error_text(), "in this build")) return;
    EXPECT_EQ(status, SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(op, nullptr);
    expect_text("desc");
    op = reinterpret_cast<skua_op*>(&context);
  };
  refused(skua_gemm_create(context, nullptr, nullptr, nullptr, &op));
  refused(skua_conv2d_create(context, nullptr, constants(), nullptr, &op));
  refused(skua_conv2d_transpose_create(context, nullptr, constants(), nullptr, &op));
  refused(skua_inverted_residual_create(context, nullptr, nullptr, nullptr, &op));
  refused(skua_pool2d_create(context, nullptr, &op));
  refused(skua_unary_create(context, nullptr, &op));
  refused(skua_binary_create(context, nullptr, &op));
  refused(skua_select_create(context, nullptr, &op));
  refused(skua_softmax_create(context, nullptr, &op));
  refused(skua_norm_create(context, nullptr, nullptr, nullptr, nullptr, nullptr, &op));
  refused(skua_reduce_create(context, nullptr, &op));
  refused(skua_resize2d_create(context, nullptr, &op));
  refused(skua_transpose_create(context, nullptr, &op));
  refused(skua_layout_create(context, nullptr, &op));
  refused(skua_pad_create(context, nullptr, &op));
  refused(skua_slice_create(context, nullptr, &op));
  refused(skua_concat_create(context, nullptr, &op));
  refused(skua_rearrange_create(context, nullptr, &op));
  refused(skua_convert_create(context, nullptr, &op));
}

TEST(GemmF32, BadArguments) {
  Context context;
  std::vector<float> m(64, 1.0f);
  float* p = m.data();
  auto refused = [&](skua_status status, const char* text) {
    EXPECT_EQ(status, SKUA_STATUS_INVALID_ARGUMENT);
    expect_text(text);
  };
  refused(skua_gemm_f32(context, 2, 2, 3, p, 2, p + 8, 2, p + 16, 2, nullptr), "lda");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 1, p + 16, 2, nullptr), "ldb");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 2, p + 16, 1, nullptr), "ldc");
  refused(skua_gemm_f32(context, 2, 2, 3, nullptr, 3, p + 8, 2, p + 16, 2, nullptr), "gemm_f32: a is NULL");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, nullptr, 2, p + 16, 2, nullptr), "gemm_f32: b is NULL");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 2, nullptr, 2, nullptr), "gemm_f32: c is NULL");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 2, p + 2, 2, nullptr), "c overlaps a");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 2, p + 13, 2, nullptr), "c overlaps b");
  refused(skua_gemm_f32(context, SIZE_MAX / 2, 2, 3, p, 3, p + 8, 2, p + 16, 2, nullptr), "address space");
  refused(skua_gemm_f32(context, 2, 2, 3, p, SIZE_MAX / 2, p + 8, 2, p + 16, 2, nullptr), "address space");
  refused(skua_gemm_f32(context, 2, 2, 3, p, 3, p + 8, 2, p + 16, SIZE_MAX, nullptr), "address space");
  for (float x : m) EXPECT_EQ(x, 1.0f);
}

}  // namespace
