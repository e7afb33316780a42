// Blobs of packed weights: the same results, and everything that is damaged or foreign is refused.
#include <algorithm>
#include <cstring>

#include "core/op.h"
#include "tests/support/blob.h"
#include "tests/support/operators.h"

using namespace skua_test;

namespace {

// A blob in memory that ends at a guard page as far as its alignment allows, read-only once written.
struct Blob {
  explicit Blob(const skua_op* op)
      : size(skua_op_packed_size(op)), memory(Guarded::bytes(size, SKUA_PACKED_ALIGNMENT)) {
    SKUA_EXPECT_OK(skua_op_packed_write(op, data(), size));
    EXPECT_TRUE(memory.untouched_outside()) << "packed_write wrote more than packed_size says";
  }
  unsigned char* data() { return static_cast<unsigned char*>(memory.memory()); }
  size_t size;
  Guarded memory;
};

std::vector<Sample> weighted() {
  std::vector<Sample> list;
  for (const Sample& s : samples())
    if (s.weights) list.push_back(s);
  return list;
}

skua_status open(skua_context* context, const void* blob, size_t size) {
  skua_op* op = reinterpret_cast<skua_op*>(context);
  const skua_status status = skua_op_create_packed(context, blob, size, &op);
  if (status == SKUA_STATUS_OK) skua_op_destroy(op);
  else EXPECT_EQ(op, nullptr);
  return status;
}

void expect_refused(skua_context* context, const void* blob, size_t size, const std::string& what) {
  EXPECT_EQ(open(context, blob, size), SKUA_STATUS_INCOMPATIBLE_BLOB) << what;
  EXPECT_NE(std::string(skua_error_text()), "") << what;
}

TEST(Packed, ReadBackGivesTheSameBits) {
  for (const char* isa : isas())
    for (const Sample& sample : weighted()) {
      SCOPED_TRACE(std::string(sample.name) + " " + isa);
      Context context(isa);
      Planned original(sample, context);
      ASSERT_NE(original.plan, nullptr);
      Blob blob(original.op);
      ASSERT_GT(blob.size, 0u);
      Blob again(original.op);
      EXPECT_EQ(std::memcmp(blob.data(), again.data(), blob.size), 0) << "writing twice gives different bytes";
      blob.memory.read_only();
      // A sample whose op comes from the blob.
      Sample from_blob = sample;
      from_blob.create = [&](skua_context* c, skua_op** out) {
        return skua_op_create_packed(c, blob.data(), blob.size, out);
      };
      Planned copy(from_blob, context);
      ASSERT_NE(copy.plan, nullptr);
      EXPECT_EQ(skua_op_input_count(copy.op), skua_op_input_count(original.op));
      EXPECT_EQ(skua_op_output_count(copy.op), skua_op_output_count(original.op));
      EXPECT_STREQ(skua_plan_kernel(copy.plan), skua_plan_kernel(original.plan));
      EXPECT_STREQ(skua_plan_algorithm(copy.plan), skua_plan_algorithm(original.plan));
      EXPECT_EQ(copy.compute(), original.compute());
      run(copy.op, sample.values());
      // And what the copy writes is the blob again.
      Blob third(copy.op);
      EXPECT_EQ(third.size, blob.size);
      EXPECT_EQ(std::memcmp(third.data(), blob.data(), blob.size), 0);
    }
}

TEST(Packed, Truncated) {
  for (const Sample& sample : weighted()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned original(sample, context);
    ASSERT_NE(original.plan, nullptr);
    Blob blob(original.op);
    for (size_t size = 0; size < blob.size; size += size < 300 || size + 300 > blob.size ? 1 : 61) {
      // Only the first `size` bytes can be read at all.
      Guarded part = Guarded::bytes(size, 1);
      std::memcpy(part.memory(), blob.data(), size);
      if (reinterpret_cast<uintptr_t>(part.memory()) % SKUA_PACKED_ALIGNMENT) {
        EXPECT_EQ(open(context, part.memory(), size), SKUA_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::strstr(skua_error_text(), "aligned"), nullptr);
        expect_refused(context, blob.data(), size, "truncated to " + std::to_string(size));
      } else {
        expect_refused(context, part.memory(), size, "truncated to " + std::to_string(size));
      }
    }
    // Longer is fine: a blob may stand in a larger file.
    std::vector<unsigned char> file(blob.size + 2 * SKUA_PACKED_ALIGNMENT);
    auto* at = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(file.data()) + SKUA_PACKED_ALIGNMENT - 1) /
                                                SKUA_PACKED_ALIGNMENT * SKUA_PACKED_ALIGNMENT);
    std::memcpy(at, blob.data(), blob.size);
    EXPECT_EQ(open(context, at, blob.size + SKUA_PACKED_ALIGNMENT), SKUA_STATUS_OK) << skua_error_text();
  }
}

// Every bit of the first 512 bytes, where header and config are, and a sample of the others.
TEST(Packed, FlippedBits) {
  for (const Sample& sample : weighted()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned original(sample, context);
    ASSERT_NE(original.plan, nullptr);
    Blob blob(original.op);
    const size_t step = small() ? 1009 : 101;
    for (size_t bit = 0; bit < blob.size * 8; bit += bit < 4096 && !small() ? 1 : step) {
      blob.data()[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
      expect_refused(context, blob.data(), blob.size, "bit " + std::to_string(bit) + " flipped");
      blob.data()[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    }
    blob.data()[blob.size - 1] ^= 0x80;
    expect_refused(context, blob.data(), blob.size, "last bit flipped");
    blob.data()[blob.size - 1] ^= 0x80;
    EXPECT_EQ(open(context, blob.data(), blob.size), SKUA_STATUS_OK) << skua_error_text();
  }
}

// Two words exchanged, a block moved: what a sum without positions would not see.
TEST(Packed, MovedBytes) {
  for (const Sample& sample : weighted()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned original(sample, context);
    ASSERT_NE(original.plan, nullptr);
    Blob blob(original.op);
    Rng rng(3);
    for (int i = 0; i < 200; ++i) {
      const size_t width = i % 2 ? 8 : 32, words = blob.size / width, a = rng.next() % words * width,
                   b = rng.next() % words * width;
      if (!std::memcmp(blob.data() + a, blob.data() + b, width)) continue;
      std::swap_ranges(blob.data() + a, blob.data() + a + width, blob.data() + b);
      expect_refused(context, blob.data(), blob.size,
                     "exchanged bytes at " + std::to_string(a) + " and " + std::to_string(b));
      std::swap_ranges(blob.data() + a, blob.data() + a + width, blob.data() + b);
    }
  }
}

// With a right checksum over wrong contents: refused, or an op that plans and runs inside its memory, whatever it
// computes. Emulated cores give each byte one of the values.
TEST(Packed, Forged) {
  const unsigned char values[] = {0, 1, 2, 3, 8, 64, 0x80, 0xff};
  for (const Sample& sample : weighted()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned original(sample, context);
    ASSERT_NE(original.plan, nullptr);
    Blob blob(original.op);
    BlobHeader header;
    std::memcpy(&header, blob.data(), sizeof header);
    const std::vector<unsigned char> good(blob.data(), blob.data() + blob.size);
    reseal(blob.data(), blob.size);
    ASSERT_EQ(std::memcmp(blob.data(), good.data(), blob.size), 0) << "support/blob.h does not know this format";
    size_t accepted = 0;
    for (size_t at = 12; at < header.weights_offset; ++at)
      for (unsigned char value : values) {
        if (small() && value != values[at % sizeof values]) continue;
        if (at >= 56 && at < 64) continue;  // the checksum itself
        if (good[at] == value) continue;
        SCOPED_TRACE(testing::Message() << "byte " << at << " is " << int(value));
        std::memcpy(blob.data(), good.data(), blob.size);
        blob.data()[at] = value;
        reseal(blob.data(), blob.size);
        skua_op* op = nullptr;
        if (skua_op_create_packed(context, blob.data(), blob.size, &op) != SKUA_STATUS_OK) {
          EXPECT_EQ(op, nullptr);
          EXPECT_NE(std::string(skua_error_text()), "");
          continue;
        }
        ++accepted;
        const size_t inputs = skua_op_input_count(op);
        std::vector<skua_tensor> shapes = sample.inputs;
        shapes.resize(inputs, sample.inputs.back());
        skua_plan* plan = nullptr;
        if (skua_op_plan(op, shapes.data(), inputs, nullptr, 0, &plan) == SKUA_STATUS_OK) {
          skua_tensor y;
          const bool one = skua_op_output_count(op) == 1 && skua_plan_outputs(plan, &y, 1) == SKUA_STATUS_OK;
          if (one && extent(y) < 1 << 14 && skua_plan_workspace(plan, 7) < 1 << 18) {
            std::vector<Data> data = sample.values();
            while (data.size() < inputs) data.push_back(data.back());
            data.resize(inputs);
            run(op, data);
          }
          skua_plan_destroy(plan);
        }
        skua_op_destroy(op);
      }
    EXPECT_GT(accepted, 0u);
    // Numbers that are zero once they are cut to 16 or 24 bits.
    for (size_t at = sizeof header; at + 4 <= header.weights_offset; at += 4)
      for (uint32_t value : {0x10000u, 0xc7000000u}) {
        std::memcpy(blob.data(), good.data(), blob.size);
        std::memcpy(blob.data() + at, &value, 4);
        reseal(blob.data(), blob.size);
        skua_op* op = nullptr;
        if (skua_op_create_packed(context, blob.data(), blob.size, &op) == SKUA_STATUS_OK) skua_op_destroy(op);
      }
  }
}

// Of grouped bytes: fewer channels than a block has, which only vectors of 64 take; a multiplier of the last block,
// which overlaps the one before, out of its bounds.
TEST(Packed, ForgedGroups) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(5);
    for (const uint32_t channels : {16u, 32u, 24u, 40u})
      for (const skua_rounding rounding : {SKUA_ROUNDING_FLOAT, SKUA_ROUNDING_DOUBLE}) {
        skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
        d.input_type = d.output_type = SKUA_DTYPE_S8, d.weight_type = SKUA_DTYPE_S8;
        d.kernel_h = d.kernel_w = 3;
        d.in_channels = d.out_channels = channels, d.groups = channels / 4;
        d.input_q.scale = d.weight_q.scale = 0.1f, d.output_q.scale = 1;
        d.requantization.rounding = rounding;
        const std::vector<signed char> weights(size_t(channels) * 36, 3);
        Op op;
        SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), nullptr, &op));
        const skua_tensor x = skua_tensor_4d(SKUA_DTYPE_S8, 1, 6, 7, channels);
        skua_plan* plan = nullptr;
        SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
        const bool grouped = !std::strcmp(skua_plan_algorithm(plan), "grouped");
        skua_plan_destroy(plan);
        if (!grouped) continue;
        Blob blob(op);
        BlobHeader header;
        std::memcpy(&header, blob.data(), sizeof header);
        const std::vector<unsigned char> good(blob.data(), blob.data() + blob.size);
        if (rounding != SKUA_ROUNDING_FLOAT) {
          const int32_t shift = 1000;
          std::memcpy(blob.data() + header.weights_offset + header.weights_size - 64 - sizeof shift, &shift,
                      sizeof shift);
          reseal(blob.data(), blob.size);
          expect_refused(context, blob.data(), blob.size, "shift of the last channel");
          continue;
        }
        const uint32_t before[] = {d.groups, channels, channels}, after[] = {d.groups / 2, channels / 2, channels / 2};
        const auto end = good.begin() + ptrdiff_t(header.weights_offset),
                   at = std::search(good.begin(), end, reinterpret_cast<const unsigned char*>(before),
                                    reinterpret_cast<const unsigned char*>(before + 3));
        ASSERT_NE(at, end) << "groups and channels are not in the config as they were";
        std::memcpy(blob.data() + (at - good.begin()), after, sizeof after);
        reseal(blob.data(), blob.size);
        skua_op* forged = nullptr;
        if (skua_op_create_packed(context, blob.data(), blob.size, &forged) != SKUA_STATUS_OK) continue;
        run(forged, {make_integers(skua_tensor_4d(SKUA_DTYPE_S8, 1, 6, 7, channels / 2), rng, -128, 127)});
        skua_op_destroy(forged);
      }
  }
}

TEST(Packed, Foreign) {
  Context context;
  Guarded noise = Guarded::bytes(4096, 64);
  expect_refused(context, noise.memory(), 4096, "zeros");
  auto* bytes = static_cast<unsigned char*>(noise.memory());
  std::memset(bytes, 0xff, 4096);
  expect_refused(context, bytes, 4096, "ones");
  Rng rng(8);
  for (int i = 0; i < 4096; ++i) bytes[i] = static_cast<unsigned char>(rng.next());
  expect_refused(context, bytes, 4096, "noise");
  expect_refused(context, bytes, 0, "nothing");
  EXPECT_EQ(open(context, bytes + 4, 4000), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(open(context, nullptr, 4096), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(open(nullptr, bytes, 4096), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_op_create_packed(context, bytes, 4096, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
}

// A blob of an operator that this build lacks is refused by its name, one of no operator by its number.
TEST(Packed, OperatorsOfOtherBuildsHaveNames) {
  Context context;
  for (const Sample& sample : weighted()) {
    Planned original(sample, context);
    Blob blob(original.op);
    BlobHeader header;
    std::memcpy(&header, blob.data(), sizeof header);
    EXPECT_NE(std::string(skua::packed_operator(header.op_class)).find(original.op->cls->name), std::string::npos)
        << sample.name << ": " << skua::packed_operator(header.op_class);
    header.op_class = 9999;
    std::memcpy(blob.data(), &header, sizeof header);
    reseal(blob.data(), blob.size);
    expect_refused(context, blob.data(), blob.size, sample.name);
    EXPECT_NE(std::string(skua_error_text()).find("no operator 9999"), std::string::npos) << skua_error_text();
  }
}

TEST(Packed, OtherFormatVersionSaysSo) {
  const std::vector<Sample> list = weighted();
  Context context;
  Planned original(list[0], context);
  ASSERT_NE(original.plan, nullptr);
  Blob blob(original.op);
  uint32_t format;
  std::memcpy(&format, blob.data() + 8, 4);
  ++format;
  std::memcpy(blob.data() + 8, &format, 4);
  expect_refused(context, blob.data(), blob.size, "another format");
  EXPECT_NE(std::strstr(skua_error_text(), "format"), nullptr) << skua_error_text();
}

void expect_sum(Blob& blob, [[maybe_unused]] uint64_t x86, [[maybe_unused]] uint64_t arm, const char* what) {
  const uint64_t sum = blob_sum(blob.data() + sizeof(BlobHeader), blob.size - sizeof(BlobHeader), 0);
#if defined(__aarch64__) || defined(__arm__)
  EXPECT_EQ(sum, arm) << what << std::hex << " 0x" << sum;
#else
  EXPECT_EQ(sum, x86) << what << std::hex << " 0x" << sum;
#endif
}

// kFormat of core/packed.cc stands for what blobs hold. Where this fails, a config or a packed layout has changed, and
// blobs of before would be misread: raise kFormat, and put its number and the new sums (of configs and weights for
// scalar kernels) here. On Arm channels of Winograd's bytes do not lie together.
TEST(Packed, TheFormatVersionStandsForTheLayout) {
  constexpr uint32_t kFormat = 15;
  struct Known {
    const char *sample, *filter;  // of kernels and algorithms: what the model takes is not the same on every machine
    uint64_t x86, arm;
  };
  const Known known[] = {
      {"gemm", nullptr, 0x2aeebb33752bb362, 0x2aeebb33752bb362},
      {"gemm_tall", nullptr, 0x91898deea51c9f39, 0x91898deea51c9f39},
      {"gemm_constant", nullptr, 0xa85163a040e70ee2, 0xa85163a040e70ee2},
      {"gemm_gelu", nullptr, 0x1c6162e8bf468434, 0x1c6162e8bf468434},
      {"conv_3x3", "winograd_f4x4", 0x9c82c2ac0875ad45, 0x9c82c2ac0875ad45},
      {"conv_3x3s2", "direct", 0x6905d92f36422f74, 0x6905d92f36422f74},
      {"conv_1x1_residual", "direct", 0xba4bcd691d99c2d3, 0xba4bcd691d99c2d3},
      {"conv_groups", "direct", 0x468f7674ceb0225e, 0x468f7674ceb0225e},
      {"conv_depthwise", "depthwise", 0x42f404ac06593762, 0x42f404ac06593762},
      {"conv_nchw", "direct", 0xf9aa66f6bef61882, 0xf9aa66f6bef61882},
      {"gemm_bytes_constant", nullptr, 0xbb4be3f10ce757ea, 0xbb4be3f10ce757ea},
      {"gemm_rows_s8", nullptr, 0x2ae6fd70b7dd221e, 0x2ae6fd70b7dd221e},
      {"gemm_rows_s4", nullptr, 0x343de1db9d0fee1e, 0x343de1db9d0fee1e},
      {"gemm_rows_s4_blocks", nullptr, 0x6d50ad1c89c480b7, 0x6d50ad1c89c480b7},
      {"gemm_weights_s4", nullptr, 0xe9398f9fcfd54e4e, 0xe9398f9fcfd54e4e},
      {"gemm_weights_s8", nullptr, 0x5295388893206734, 0x5295388893206734},
      {"conv_bytes", "winograd_f4x4", 0xe3e3990b61ba19aa, 0x4e86bcd117dd86e2},
      {"conv_bytes_groups", "direct", 0xd4b4dd9019de683e, 0xd4b4dd9019de683e},
      {"conv_bytes_depthwise", nullptr, 0x76228588c7713593, 0x76228588c7713593},
      {"conv2d_transpose", nullptr, 0xd40628662d5e603e, 0xd40628662d5e603e},
      {"inverted_residual", nullptr, 0xb9ddaee6082e9c62, 0xb9ddaee6082e9c62},
      {"norm_layer", nullptr, 0xd7ebfd80b3a7883d, 0xd7ebfd80b3a7883d},
      {"norm_rms", nullptr, 0xf33943eacc97a9c7, 0xf33943eacc97a9c7},
      {"norm_batch", nullptr, 0x9619c718e94345e7, 0x9619c718e94345e7},
      {"norm_group", nullptr, 0xc38869d22a4d18d3, 0xc38869d22a4d18d3},
      {"norm_instance", nullptr, 0x647d24bf50f3f7c7, 0x647d24bf50f3f7c7},
  };
  for (const Sample& sample : weighted()) {
    const Known* k = std::find_if(std::begin(known), std::end(known),
                                  [&](const Known& k) { return !std::strcmp(k.sample, sample.name); });
    ASSERT_NE(k, std::end(known)) << sample.name;
    Context context("scalar", k->filter);
    Planned original(sample, context);
    ASSERT_NE(original.plan, nullptr) << sample.name;
    Blob blob(original.op);
    uint32_t format;
    std::memcpy(&format, blob.data() + 8, 4);
    EXPECT_EQ(format, kFormat);
    expect_sum(blob, k->x86, k->arm, sample.name);
  }
}

// So deep that Winograd's weights are cut (winograd_kernel.h: kWinogradDepth); no sample is, they would be large.
TEST(Packed, TheFormatVersionStandsForTheLayoutOfDeepWeights) {
  constexpr uint32_t kInputs = 272, kOutputs = 9;  // of more than one group
  for (const skua_dtype type : {SKUA_DTYPE_F32, SKUA_DTYPE_S8}) {
    if (isas(type).empty()) continue;
    Context context("scalar", "winograd_f4x4");
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.kernel_h = d.kernel_w = 3;
    d.in_channels = kInputs, d.out_channels = kOutputs;
    d.input_type = d.output_type = d.weight_type = type;
    if (type == SKUA_DTYPE_S8) d.input_q.scale = d.weight_q.scale = d.output_q.scale = 0.5f;
    std::vector<float> floats(9 * kInputs * kOutputs);
    std::vector<int8_t> bytes(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = float(bytes[i] = int8_t(i * 37 % 101) - 50);
    skua_op* op = nullptr;
    SKUA_EXPECT_OK(skua_conv2d_create(
        context, &d, type == SKUA_DTYPE_F32 ? static_cast<void*>(floats.data()) : bytes.data(), nullptr, &op));
    ASSERT_NE(op, nullptr);
    Blob blob(op);
    skua_op_destroy(op);
    if (type == SKUA_DTYPE_F32) expect_sum(blob, 0x3938ed1cd2fd2c42, 0x3938ed1cd2fd2c42, "f32");
    else expect_sum(blob, 0x9f84a9a37f309fda, 0x8f639b9655b2b08d, "s8");
  }
}

// Weights packed for the highest instruction set do not fit the panels of the lowest; what does open gives the right
// result.
TEST(Packed, OtherInstructionSet) {
  size_t refused = 0;
  for (const Sample& sample : weighted()) {
    SCOPED_TRACE(sample.name);
    for (const char* writer : isas())
      for (const char* reader : isas()) {
        SCOPED_TRACE(std::string(writer) + " read by " + reader);
        Context from(writer), to(reader);
        Planned original(sample, from);
        ASSERT_NE(original.plan, nullptr);
        Blob blob(original.op);
        skua_op* op = nullptr;
        const skua_status status = skua_op_create_packed(to, blob.data(), blob.size, &op);
        if (status != SKUA_STATUS_OK) {
          EXPECT_EQ(status, SKUA_STATUS_INCOMPATIBLE_BLOB);
          EXPECT_STRNE(writer, reader);
          EXPECT_GT(std::strlen(skua_error_text()), 20u) << skua_error_text();
          ++refused;
          continue;
        }
        const std::vector<Data> want = run(original.op, sample.values()), got = run(op, sample.values());
        skua_op_destroy(op);
        for (size_t i = 0; i < want.size() && i < got.size(); ++i) expect_close(got[i], dense_double(want[i]), 1e-4);
      }
  }
  EXPECT_EQ(refused > 0, isas().size() > 1);
}

TEST(Packed, BadArguments) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Op op;
    SKUA_EXPECT_OK(sample.create(context, &op));
    const size_t size = skua_op_packed_size(op);
    EXPECT_EQ(size > 0, sample.weights);
    std::vector<unsigned char> memory(size + 128, 0xaa);
    auto* at = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    if (!size) {
      EXPECT_EQ(skua_op_packed_write(op, at, 64), SKUA_STATUS_UNSUPPORTED);
      EXPECT_NE(std::strstr(skua_error_text(), "packed"), nullptr);
      continue;
    }
    EXPECT_EQ(skua_op_packed_write(op, at, size - 1), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "size"), nullptr);
    EXPECT_EQ(skua_op_packed_write(op, at + 8, size), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "aligned"), nullptr);
    EXPECT_EQ(skua_op_packed_write(op, nullptr, size), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_op_packed_write(nullptr, at, size), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(at[0], 0xaa);
  }
  EXPECT_EQ(skua_op_packed_size(nullptr), 0u);
}

}  // namespace
