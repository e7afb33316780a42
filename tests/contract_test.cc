// What every operator promises, whatever it computes: faults, memory, executors, plans.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

// An allocator that gives memory `until` times and then no more; it knows what it gave.
struct Scarce {
  size_t until = SIZE_MAX, taken = 0;
  std::map<void*, size_t> live;

  skua_allocator allocator() {
    return {this,
            [](void* ctx, size_t size, size_t align) -> void* {
              auto& self = *static_cast<Scarce*>(ctx);
              void* p = nullptr;
              if (self.taken++ >= self.until || posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size))
                return nullptr;
              self.live[p] = size;
              return p;
            },
            [](void* ctx, void* memory, size_t size) {
              auto& self = *static_cast<Scarce*>(ctx);
              const auto at = self.live.find(memory);
              ASSERT_NE(at, self.live.end()) << "free of what alloc never gave";
              EXPECT_EQ(at->second, size);
              self.live.erase(at);
              std::free(memory);
            }};
  }
};

skua_context* create_context(Scarce& memory) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.allocator = memory.allocator();
  skua_context* context = nullptr;
  SKUA_EXPECT_OK(skua_context_create(&options, &context));
  return context;
}

TEST(Faults, AllocatorFailsAtTheNthCall) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    // Create, plan, pack, create from the blob, destroy: once with all the memory, to count the calls.
    for (size_t until = 0, calls = 1; until <= calls; ++until) {
      Scarce memory;
      skua_context* context = create_context(memory);
      const size_t own = memory.taken;
      memory.until = until == 0 ? SIZE_MAX : own + until - 1;
      skua_op *op = nullptr, *again = nullptr;
      skua_plan* plan = nullptr;
      auto out_of_memory = [&](skua_status status, const void* result) {
        if (status == SKUA_STATUS_OK) return false;
        EXPECT_EQ(status, SKUA_STATUS_OUT_OF_MEMORY) << skua_error_text();
        EXPECT_NE(std::string(skua_error_text()), "");
        EXPECT_EQ(result, nullptr);
        return true;
      };
      skua_status status = sample.create(context, &op);
      bool failed = out_of_memory(status, op);
      EXPECT_TRUE(!failed || memory.live.size() == 1) << "a failed create kept memory";
      void* blob = nullptr;
      if (!failed) {
        const size_t before = memory.live.size();
        status = skua_op_plan(op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, &plan);
        failed = out_of_memory(status, plan);
        EXPECT_TRUE(!failed || memory.live.size() == before) << "a failed plan kept memory";
      }
      if (!failed && skua_op_packed_size(op)) {
        const size_t size = skua_op_packed_size(op), before = memory.live.size();
        ASSERT_EQ(posix_memalign(&blob, SKUA_PACKED_ALIGNMENT, size), 0);
        SKUA_EXPECT_OK(skua_op_packed_write(op, blob, size));
        status = skua_op_create_packed(context, blob, size, &again);
        failed = out_of_memory(status, again);
        EXPECT_TRUE(!failed || memory.live.size() == before) << "a failed create_packed kept memory";
      }
      if (until == 0) {
        EXPECT_FALSE(failed) << skua_error_text();
        calls = memory.taken - own;
      } else {
        EXPECT_EQ(failed, until <= calls);
      }
      skua_op_destroy(again);
      skua_plan_destroy(plan);
      skua_op_destroy(op);
      skua_context_destroy(context);
      EXPECT_EQ(memory.live.size(), 0u) << "leaked";
      std::free(blob);
    }
  }
}

TEST(Faults, GemmInOneCall) {
  for (size_t until = 0; until < 3; ++until) {
    Scarce memory;
    skua_context* context = create_context(memory);
    memory.until = memory.taken + until;
    std::vector<float> c(70 * 21);
    // 21 columns are no whole vector: B's last panel needs a workspace.
    const skua_status status =
        skua_gemm_f32(context, 70, 21, 9, constants(), 9, constants(), 21, c.data(), 21, nullptr);
    if (until == 0) {
      EXPECT_EQ(status, SKUA_STATUS_OUT_OF_MEMORY);
      EXPECT_NE(std::strstr(skua_error_text(), "gemm"), nullptr) << skua_error_text();
    } else {
      EXPECT_EQ(status, SKUA_STATUS_OK) << skua_error_text();
    }
    EXPECT_EQ(memory.live.size(), 1u);
    skua_context_destroy(context);
  }
}

TEST(Faults, ContextWithoutMemory) {
  Scarce memory;
  memory.until = 0;
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.allocator = memory.allocator();
  skua_context* context = reinterpret_cast<skua_context*>(&memory);
  EXPECT_EQ(skua_context_create(&options, &context), SKUA_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(context, nullptr);
}

TEST(Memory, PlanTakesOneBlockAndRunNone) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Op op;
    SKUA_EXPECT_OK(sample.create(context, &op));
    ASSERT_NE(op.op, nullptr);
    const size_t taken = context.taken;
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, &plan));
    EXPECT_EQ(context.taken, taken + 1);
    skua_plan_destroy(plan);
    run(op, sample.values());  // which expects no allocation, by the context or by malloc
  }
}

// Every sample at every instruction set: guard pages, poison, in place, executors (support.cc).
TEST(Memory, EverySampleStaysInsideItsTensors) {
  for (const char* isa : isas())
    for (const Sample& sample : samples()) {
      SCOPED_TRACE(std::string(sample.name) + " " + isa);
      Context context(isa);
      Op op;
      SKUA_EXPECT_OK(sample.create(context, &op));
      ASSERT_NE(op.op, nullptr);
      const std::vector<Data> apart = run(op, sample.values());
      if (sample.in_place < 0) continue;
      const std::vector<Data> together = run_in_place(op, sample.values(), size_t(sample.in_place));
      ASSERT_EQ(apart.size(), together.size());
      for (size_t i = 0; i < apart.size(); ++i) expect_same_bits(together[i], apart[i]);
    }
}

TEST(Plan, InCallersMemory) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned usual(sample, context);
    ASSERT_NE(usual.plan, nullptr);
    const size_t size = skua_op_plan_size(usual.op), taken = context.taken;
    ASSERT_GT(size, 0u);
    Guarded memory = Guarded::bytes(size, 16);
    std::memset(memory.memory(), 0xff, size);
    skua_plan* plan = nullptr;
    {
      MallocCount mallocs;
      SKUA_EXPECT_OK(skua_op_plan_init(usual.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0,
                                       memory.memory(), size, &plan));
      EXPECT_EQ(mallocs.count(), 0u);
    }
    EXPECT_EQ(context.taken, taken);
    ASSERT_NE(plan, nullptr);
    EXPECT_TRUE(memory.untouched_outside());
    const std::vector<unsigned char> want = usual.compute();
    std::swap(usual.plan, plan);
    EXPECT_EQ(usual.compute(), want);
    skua_plan_destroy(usual.plan);  // allowed, and nothing
    std::swap(usual.plan, plan);
    plan = nullptr;
    EXPECT_EQ(skua_op_plan_init(usual.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, memory.memory(),
                                size - 1, &plan),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "size"), nullptr) << skua_error_text();
    EXPECT_EQ(skua_op_plan_init(usual.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0,
                                static_cast<char*>(memory.memory()) + 8, size, &plan),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "aligned"), nullptr) << skua_error_text();
    EXPECT_EQ(skua_op_plan_init(usual.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, nullptr, size, &plan),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "memory"), nullptr) << skua_error_text();
    EXPECT_EQ(plan, nullptr);
  }
}

TEST(Plan, ExplainIsLikeSnprintf) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const size_t length = skua_plan_explain(p.plan, nullptr, 0);
    ASSERT_GT(length, 20u);
    std::string whole(length + 1, 'x');
    EXPECT_EQ(skua_plan_explain(p.plan, whole.data(), whole.size()), length);
    EXPECT_EQ(std::strlen(whole.c_str()), length);
    whole.resize(length);
    EXPECT_NE(whole.find(skua_plan_algorithm(p.plan)), std::string::npos);
    EXPECT_NE(whole.find(skua_plan_kernel(p.plan)), std::string::npos);
    EXPECT_STRNE(skua_plan_algorithm(p.plan), "");
    for (size_t size : {size_t(1), size_t(2), size_t(17), length / 2, length}) {
      Guarded text = Guarded::bytes(size, 1);
      EXPECT_EQ(skua_plan_explain(p.plan, static_cast<char*>(text.memory()), size), length);
      EXPECT_EQ(std::string(static_cast<char*>(text.memory())), whole.substr(0, size - 1)) << "truncated to " << size;
    }
    char one = 'x';
    EXPECT_EQ(skua_plan_explain(p.plan, &one, 0), length);
    EXPECT_EQ(one, 'x');
  }
}

// The same shapes with an output given: its strides are taken, a wrong shape, type or overlap refused.
TEST(Plan, GivenOutputs) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    auto plan_with = [&](const std::vector<skua_tensor>& outputs) {
      skua_plan* plan = nullptr;
      const skua_status status =
          skua_op_plan(p.op, sample.inputs.data(), sample.inputs.size(), outputs.data(), outputs.size(), &plan);
      EXPECT_EQ(status == SKUA_STATUS_OK, plan != nullptr);
      skua_plan_destroy(plan);
      return status;
    };
    SKUA_EXPECT_OK(plan_with(p.outputs));
    for (size_t o = 0; o < p.outputs.size(); ++o) {
      auto expect_refused = [&](const char* what, auto change) {
        std::vector<skua_tensor> outputs = p.outputs;
        for (skua_tensor& t : outputs) std::fill_n(t.stride, t.rank, size_t(0));
        change(outputs[o]);
        EXPECT_EQ(plan_with(outputs), SKUA_STATUS_INVALID_ARGUMENT) << what;
        EXPECT_NE(std::strstr(skua_error_text(), ("output " + std::to_string(o)).c_str()), nullptr)
            << skua_error_text();
        EXPECT_NE(std::strstr(skua_error_text(), what), nullptr) << skua_error_text();
      };
      expect_refused("extent", [](skua_tensor& t) { ++t.shape[t.rank - 1]; });
      expect_refused("extent", [](skua_tensor& t) { --t.shape[0]; });
      expect_refused("rank", [](skua_tensor& t) { ++t.rank, t.shape[t.rank - 1] = 1; });
      expect_refused("rank", [](skua_tensor& t) { t.rank = 0; });
      expect_refused("type",
                     [](skua_tensor& t) { t.type = t.type == SKUA_DTYPE_F32 ? SKUA_DTYPE_S32 : SKUA_DTYPE_F32; });
      expect_refused("type", [](skua_tensor& t) { t.type = skua_dtype(77); });
      const skua_tensor t = p.outputs[o];
      if (t.rank > 1 && t.shape[0] > 1 && t.shape[t.rank - 1] > 1)
        for (const size_t stride : {size_t(0), t.shape[t.rank - 1] - 1})
          expect_refused("in dimension 0, which makes elements overlap",
                         [&](skua_tensor& s) { s = resolved(t), s.stride[0] = stride; });
      expect_refused("address space", [&](skua_tensor& s) {
        s = resolved(t), s.stride[0] = t.shape[0] > 1 ? SIZE_MAX / 4 : 1,
        s.shape[0] += t.shape[0] > 1 ? 0 : SIZE_MAX / 8;
      });
    }
  }
}

TEST(Plan, BadInputs) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Op op;
    SKUA_EXPECT_OK(sample.create(context, &op));
    const size_t n = sample.inputs.size(), live = context.live;
    auto refused = [&](const skua_tensor* inputs, size_t count, const char* text) {
      skua_plan* plan = reinterpret_cast<skua_plan*>(&context);
      const skua_status status = skua_op_plan(op, inputs, count, nullptr, 0, &plan);
      EXPECT_TRUE(status == SKUA_STATUS_INVALID_ARGUMENT || status == SKUA_STATUS_UNSUPPORTED)
          << skua_status_name(status);
      if (status == SKUA_STATUS_OK) return skua_plan_destroy(plan);
      EXPECT_EQ(plan, nullptr);
      EXPECT_NE(std::strstr(skua_error_text(), text), nullptr)
          << "\"" << skua_error_text() << "\" does not say \"" << text << "\"";
      EXPECT_EQ(context.live, live) << "a failed plan kept memory";
    };
    refused(nullptr, n, "inputs");
    std::vector<skua_tensor> more(65, sample.inputs[0]);
    refused(more.data(), skua_op_input_count(op) ? n + 1 : 65, "n_inputs");
    refused(more.data(), 0, "n_inputs");
    for (size_t i = 0; i < n; ++i) {
      SCOPED_TRACE(i);
      const std::string name = "input " + std::to_string(i);
      auto with = [&](auto change, const char* text) {
        std::vector<skua_tensor> inputs = sample.inputs;
        change(inputs[i]);
        refused(inputs.data(), n, text);
      };
      with([](skua_tensor& t) { t.type = skua_dtype(99); }, name.c_str());
      with([](skua_tensor& t) { t.type = t.type == SKUA_DTYPE_U8 ? SKUA_DTYPE_F16 : SKUA_DTYPE_U8; }, name.c_str());
      with([](skua_tensor& t) { t.rank = 0; }, name.c_str());
      with([](skua_tensor& t) { t.rank = SKUA_MAX_RANK + 1; }, name.c_str());
      with([](skua_tensor& t) { t.rank = UINT32_MAX; }, name.c_str());
      with([](skua_tensor& t) { t.shape[0] = SIZE_MAX; }, name.c_str());
      with([](skua_tensor& t) { t.shape[0] = SIZE_MAX / 8; }, "input ");  // too large, or it does not fit the others
      if (sample.inputs[i].shape[0] > 1)
        with([](skua_tensor& t) { t = resolved(t), t.stride[0] = SIZE_MAX; }, name.c_str());
      with([](skua_tensor& t) { t.shape[0] = t.shape[t.rank - 1] = size_t(1) << (sizeof(size_t) * 4); }, name.c_str());
    }
  }
}

TEST(Run, BadArguments) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    std::vector<Guarded> memory;
    std::vector<skua_buffer> outputs;
    for (const skua_tensor& t : p.outputs) {
      memory.push_back(Guarded(extent(t)));
      std::fill_n(memory.back().data(), memory.back().size(), 77.0f);
      outputs.push_back(skua_host_buffer(memory.back().data()));
    }
    const size_t need = skua_plan_workspace(p.plan, 3);
    EXPECT_LE(skua_plan_workspace(p.plan, 1), need);
    EXPECT_EQ(skua_plan_workspace(p.plan, 0), skua_plan_workspace(p.plan, 1));
    Guarded workspace = Guarded::bytes(need + 64, 64);
    Shuffled executor(3);
    auto refused = [&](const char* text, const std::vector<skua_buffer>& in, const std::vector<skua_buffer>& out,
                       void* space, size_t size, const skua_executor* e) {
      EXPECT_EQ(skua_plan_run(p.plan, in.data(), in.size(), out.data(), out.size(), space, size, e),
                SKUA_STATUS_INVALID_ARGUMENT)
          << text;
      EXPECT_NE(std::strstr(skua_error_text(), text), nullptr)
          << "\"" << skua_error_text() << "\" does not say \"" << text << "\"";
      for (Guarded& g : memory)
        for (size_t i = 0; i < g.size(); ++i)
          ASSERT_EQ(g.data()[i], 77.0f) << "an output was written by a run that was refused: " << text;
    };
    skua_executor broken = executor.executor;
    broken.parallel_for = nullptr;
    refused("parallel_for", p.inputs, outputs, workspace.memory(), need, &broken);
    if (need) {
      refused("workspace", p.inputs, outputs, nullptr, need, executor);
      refused("workspace", p.inputs, outputs, workspace.memory(), need - 1, executor);
      refused("aligned", p.inputs, outputs, static_cast<char*>(workspace.memory()) + 4, need, executor);
    }
    std::vector<skua_buffer> too_many = p.inputs, more = outputs;
    too_many.push_back(p.inputs[0]);
    more.push_back(outputs[0]);
    refused("n_inputs", too_many, outputs, workspace.memory(), need, nullptr);
    refused("n_outputs", p.inputs, more, workspace.memory(), need, nullptr);
    EXPECT_EQ(skua_plan_run(p.plan, nullptr, p.inputs.size(), outputs.data(), outputs.size(), workspace.memory(), need,
                            nullptr),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "inputs"), nullptr);
    EXPECT_EQ(skua_plan_run(p.plan, p.inputs.data(), p.inputs.size(), nullptr, outputs.size(), workspace.memory(), need,
                            nullptr),
              SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "outputs"), nullptr);
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      if (!elements(sample.inputs[i])) continue;
      const std::string name = "input " + std::to_string(i);
      std::vector<skua_buffer> in = p.inputs;
      in[i].host = nullptr;
      refused(name.c_str(), in, outputs, workspace.memory(), need, nullptr);
      in = p.inputs;
      in[i].offset = 1;
      if (skua_dtype_bits(sample.inputs[i].type) > 8)
        refused(name.c_str(), in, outputs, workspace.memory(), need, nullptr);
      in = p.inputs;
      in[i].device = reinterpret_cast<skua_device_buffer*>(&context);
      refused(name.c_str(), in, outputs, workspace.memory(), need, nullptr);
      // An output that begins inside an input: refused, in place or not.
      if (extent(sample.inputs[i]) > 1) {
        std::vector<skua_buffer> out = outputs;
        out[0] = skua_host_buffer(p.data[i].v.data() + 1);
        refused("overlaps", p.inputs, out, workspace.memory(), need, nullptr);
        out[0] = p.inputs[i];
        const bool same = sample.in_place >= 0 && elements(sample.inputs[i]) == elements(p.outputs[0]);
        if (!same) refused("overlaps", p.inputs, out, workspace.memory(), need, nullptr);
      }
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      const std::string name = "output " + std::to_string(o);
      std::vector<skua_buffer> out = outputs;
      out[o].host = nullptr;
      refused(name.c_str(), p.inputs, out, workspace.memory(), need, nullptr);
      out = outputs;
      out[o].offset = 2;
      if (skua_dtype_bits(p.outputs[o].type) > 8)
        refused(name.c_str(), p.inputs, out, workspace.memory(), need, nullptr);
      out = outputs;
      out[o].device = reinterpret_cast<skua_device_buffer*>(&context);
      refused(name.c_str(), p.inputs, out, workspace.memory(), need, nullptr);
    }
    if (need) {
      std::vector<skua_buffer> moved = outputs;
      moved[0] = skua_host_buffer(static_cast<char*>(workspace.memory()) + need - 4);
      refused("workspace overlaps output 0", p.inputs, moved, workspace.memory(), need, executor);
      moved = p.inputs;
      moved[0] = skua_host_buffer(static_cast<char*>(workspace.memory()) + need - 4);
      refused("workspace overlaps input 0", moved, outputs, workspace.memory(), need, executor);
    }
    if (outputs.size() == 2) {
      std::vector<skua_buffer> out = outputs;
      out[1] = out[0];
      refused("overlap", p.inputs, out, workspace.memory(), need, nullptr);
    }
  }
}

// Offsets are bytes, and count.
// One address with other strides would be written before it is read.
TEST(Run, InPlaceNeedsTheSameStrides) {
  Context context;
  const skua_tensor narrow = resolved(shape({20, 10})), wide = with_holes(narrow, {0, 6});
  std::vector<float> memory(20 * 16, 1.0f);
  const skua_buffer buffer = skua_host_buffer(memory.data());
  const auto run_at_one_address = [&](const skua_op* op, const skua_tensor& in, const skua_tensor& out) {
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &in, 1, &out, 1, &plan));
    alignas(64) static char workspace[1 << 16];
    const skua_status status = skua_plan_run(plan, &buffer, 1, &buffer, 1, workspace, sizeof workspace, nullptr);
    skua_plan_destroy(plan);
    return status;
  };
  Op unary, softmax, conv;
  skua_unary_desc u = SKUA_UNARY_DESC_INIT;
  u.kind = SKUA_UNARY_SQUARE;
  SKUA_EXPECT_OK(skua_unary_create(context, &u, &unary));
  const skua_softmax_desc s = SKUA_SOFTMAX_DESC_INIT;
  SKUA_EXPECT_OK(skua_softmax_create(context, &s, &softmax));
  for (const skua_op* op : {static_cast<const skua_op*>(unary), static_cast<const skua_op*>(softmax)}) {
    EXPECT_EQ(run_at_one_address(op, narrow, wide), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(skua_error_text(), "same shape and strides"), nullptr) << skua_error_text();
    EXPECT_EQ(run_at_one_address(op, wide, narrow), SKUA_STATUS_INVALID_ARGUMENT);
    SKUA_EXPECT_OK(run_at_one_address(op, narrow, narrow));
    SKUA_EXPECT_OK(run_at_one_address(op, wide, wide));
  }
  skua_conv2d_desc c = SKUA_CONV2D_DESC_INIT;
  c.in_channels = c.out_channels = 3;
  const float weights[9] = {};
  SKUA_EXPECT_OK(skua_conv2d_create(context, &c, weights, nullptr, &conv));
  const skua_tensor slice = with_holes(resolved(shape({1, 4, 5, 3})), {0, 0, 0, 2});
  EXPECT_EQ(run_at_one_address(conv, slice, slice), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(skua_error_text(), "overlaps"), nullptr) << skua_error_text();
}

TEST(Run, BufferOffsets) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      p.data[i].v.insert(p.data[i].v.begin(), 3, -9.0f);
      p.inputs[i].host = p.data[i].v.data();
      p.inputs[i].offset = 3 * sizeof(float);
    }
    EXPECT_EQ(p.compute(), want);
  }
}

}  // namespace
