// What a stream has recorded may be destroyed at once: operators, plans, buffers, events, and the stream itself.
#include <atomic>
#include <thread>
#include <utility>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

constexpr size_t kRows = 300, kColumns = 64, kBytes = kRows * kColumns * sizeof(float);

// relu(x * W + bias) + tanh of it, through a buffer in between, so often that a stream needs several submits; then
// everything but the result goes.
struct Chain {
  Chain(skua_context* c, const std::vector<float>& weights, const std::vector<float>& x) : context(c) {
    skua_gemm_desc g = SKUA_GEMM_DESC_INIT;
    g.n = g.k = kColumns;
    g.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
    SKUA_EXPECT_OK(skua_gemm_create(context, &g, weights.data(), weights.data(), &gemm));
    skua_unary_desc u = SKUA_UNARY_DESC_INIT;
    u.kind = SKUA_UNARY_TANH;
    SKUA_EXPECT_OK(skua_unary_create(context, &u, &unary));
    const skua_tensor t = shape({kRows, kColumns});
    SKUA_EXPECT_OK(skua_op_plan(gemm, &t, 1, nullptr, 0, &plans[0]));
    SKUA_EXPECT_OK(skua_op_plan(unary, &t, 1, nullptr, 0, &plans[1]));
    for (skua_device_buffer** b : {&from, &between}) SKUA_EXPECT_OK(skua_device_buffer_create(context, kBytes, b));
    SKUA_EXPECT_OK(skua_device_buffer_write(from, 0, x.data(), kBytes));
  }
  void enqueue(skua_stream* stream, skua_device_buffer* result) {
    const skua_buffer a = {nullptr, from, 0}, b = {nullptr, between, 0}, c = {nullptr, result, 0};
    for (int i = 0; i < 50; ++i) {
      SKUA_EXPECT_OK(skua_plan_enqueue(plans[0], &a, 1, &b, 1, nullptr, stream));
      SKUA_EXPECT_OK(skua_plan_enqueue(plans[1], &b, 1, i == 49 ? &c : &a, 1, nullptr, stream));
    }
  }
  void destroy() {
    for (skua_plan*& p : plans) skua_plan_destroy(std::exchange(p, nullptr));
    skua_op_destroy(std::exchange(gemm, nullptr));
    skua_op_destroy(std::exchange(unary, nullptr));
    skua_device_buffer_destroy(std::exchange(from, nullptr));
    skua_device_buffer_destroy(std::exchange(between, nullptr));
  }
  ~Chain() { destroy(); }
  skua_context* context;
  skua_op *gemm = nullptr, *unary = nullptr;
  skua_plan* plans[2] = {};
  skua_device_buffer *from = nullptr, *between = nullptr;
};

struct Values {
  Values() {
    Rng rng(11);
    for (size_t i = 0; i < kColumns * kColumns; ++i) weights.push_back(rng.uniform(-0.3f, 0.3f));
    for (size_t i = 0; i < kRows * kColumns; ++i) x.push_back(rng.uniform(-1, 1));
  }
  std::vector<float> weights, x;
};

std::vector<float> read(skua_device_buffer* buffer) {
  std::vector<float> values(kRows * kColumns);
  SKUA_EXPECT_OK(skua_device_buffer_read(buffer, 0, values.data(), kBytes));
  return values;
}

// With everything alive until the end.
std::vector<float> wanted(skua_context* context, const Values& v) {
  skua_stream* stream = nullptr;
  skua_device_buffer* y = nullptr;
  SKUA_EXPECT_OK(skua_stream_create(context, &stream));
  SKUA_EXPECT_OK(skua_device_buffer_create(context, kBytes, &y));
  std::vector<float> values;
  {
    Chain chain(context, v.weights, v.x);
    chain.enqueue(stream, y);
    SKUA_EXPECT_OK(skua_stream_wait(stream));
    values = read(y);
  }
  skua_stream_destroy(stream);
  skua_device_buffer_destroy(y);
  return values;
}

struct Negation {
  explicit Negation(skua_context* context) {
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.kind = SKUA_UNARY_NEG;
    SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
    const skua_tensor t = shape({kRows, kColumns});
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
  }
  ~Negation() { destroy_plan(); }
  void destroy_plan() { skua_plan_destroy(std::exchange(plan, nullptr)); }
  Op op;
  skua_plan* plan = nullptr;
};

TEST(GpuLifetime, WhatWasRecordedMayGo) {
  SKUA_NEED_GPU(devices);
  const Values v;
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    const std::vector<float> want = wanted(gpu, v);
    const size_t live = gpu.live;
    for (const bool submitted : {false, true})
      for (const bool stream_too : {false, true}) {
        SCOPED_TRACE(std::string(submitted ? "after" : "before") + " submit" + (stream_too ? ", the stream too" : ""));
        skua_stream* stream = nullptr;
        skua_device_buffer* y = nullptr;
        SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
        SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, &y));
        const size_t with_stream = gpu.live;
        Chain chain(gpu, v.weights, v.x);
        chain.enqueue(stream, y);
        if (submitted) SKUA_EXPECT_OK(skua_stream_submit(stream));
        chain.destroy();
        if (stream_too) skua_stream_destroy(std::exchange(stream, nullptr));
        else SKUA_EXPECT_OK(skua_stream_wait(stream));
        EXPECT_EQ(gpu.live, with_stream - (stream_too ? 1 : 0)) << "memory that the stream kept is not freed with it";
        EXPECT_EQ(read(y), want);
        skua_stream_destroy(stream);
        skua_device_buffer_destroy(y);
        EXPECT_EQ(gpu.live, live);
      }
  }
}

// What a dispatch only writes is held too. (OpenCL's driver holds it, not the library.)
TEST(GpuLifetime, OutputsMayGoUnread) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    Negation negate(gpu);
    skua_stream* stream = nullptr;
    skua_device_buffer *x = nullptr, *y = nullptr;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
    for (skua_device_buffer** b : {&x, &y}) SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, b));
    const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
    SKUA_EXPECT_OK(skua_plan_enqueue(negate.plan, &in, 1, &out, 1, nullptr, stream));
    const size_t live = gpu.live;
    skua_device_buffer_destroy(y);
    if (device.device.api == SKUA_DEVICE_API_VULKAN) { EXPECT_EQ(gpu.live, live); }
    SKUA_EXPECT_OK(skua_stream_wait(stream));
    EXPECT_EQ(gpu.live, live - 1);
    skua_stream_destroy(stream);
    skua_device_buffer_destroy(x);
    negate.destroy_plan();
  }
}

// A stream that waited for another's event does not need that one any more, nor its event.
TEST(GpuLifetime, EventsAndTheirStreamsMayGo) {
  SKUA_NEED_GPU(devices);
  const Values v;
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    const std::vector<float> want = wanted(gpu, v);
    skua_stream *first = nullptr, *second = nullptr;
    skua_event* event = nullptr;
    skua_device_buffer *middle = nullptr, *y = nullptr;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &first));
    SKUA_EXPECT_OK(skua_stream_create(gpu, &second));
    SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, &middle));
    SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, &y));
    Negation negate(gpu);
    {
      Chain chain(gpu, v.weights, v.x);
      chain.enqueue(first, middle);
    }
    SKUA_EXPECT_OK(skua_event_record(first, &event));
    SKUA_EXPECT_OK(skua_stream_wait_event(second, event));
    const skua_buffer in = {nullptr, middle, 0}, out = {nullptr, y, 0};
    SKUA_EXPECT_OK(skua_plan_enqueue(negate.plan, &in, 1, &out, 1, nullptr, second));
    skua_event_destroy(event);
    negate.destroy_plan();
    skua_device_buffer_destroy(middle);
    skua_stream_destroy(first);
    SKUA_EXPECT_OK(skua_stream_wait(second));
    std::vector<float> negative = read(y);
    for (float& f : negative) f = -f;
    EXPECT_EQ(negative, want);
    skua_stream_destroy(second);
    skua_device_buffer_destroy(y);
  }
}

// Threads with a stream each record the same buffers, which go while others still run.
TEST(GpuLifetime, StreamsOfSeveralThreadsShareBuffers) {
  SKUA_NEED_GPU(devices);
  const Values v;
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    Negation negate(gpu);
    skua_device_buffer* x = nullptr;
    SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, &x));
    SKUA_EXPECT_OK(skua_device_buffer_write(x, 0, v.x.data(), kBytes));
    constexpr int kThreads = 3;
    skua_device_buffer* y[kThreads] = {};
    skua_stream* streams[kThreads] = {};
    for (int i = 0; i < kThreads; ++i) {
      SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, &y[i]));
      SKUA_EXPECT_OK(skua_stream_create(gpu, &streams[i]));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y[i], 0};
        for (int n = 0; n < 200; ++n)
          SKUA_EXPECT_OK(skua_plan_enqueue(negate.plan, &in, 1, &out, 1, nullptr, streams[i]));
      });
    for (std::thread& thread : threads) thread.join();
    skua_device_buffer_destroy(x);
    negate.destroy_plan();
    for (int i = 0; i < kThreads; ++i) {
      SKUA_EXPECT_OK(skua_stream_wait(streams[i]));
      std::vector<float> got = read(y[i]);
      for (float& f : got) f = -f;
      EXPECT_EQ(got, v.x);
      skua_stream_destroy(streams[i]);
      skua_device_buffer_destroy(y[i]);
    }
  }
}

// An event belongs to who recorded it: a thread destroys, waits for or reads it while another destroys its stream.
TEST(GpuLifetime, EventsOutliveStreamsOfOtherThreads) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    Negation negate(gpu);
    skua_device_buffer *x = nullptr, *y = nullptr;
    for (skua_device_buffer** b : {&x, &y}) SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, b));
    const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
    skua_stream* other = nullptr;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &other));
    for (int round = 0; round < 60; ++round) {
      skua_stream* stream = nullptr;
      skua_event *begin = nullptr, *end = nullptr;
      SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
      SKUA_EXPECT_OK(skua_event_record(stream, &begin));
      for (int i = 0; i < 10; ++i) SKUA_EXPECT_OK(skua_plan_enqueue(negate.plan, &in, 1, &out, 1, nullptr, stream));
      SKUA_EXPECT_OK(skua_event_record(stream, &end));
      std::atomic<int> ready{0};
      const auto meet = [&] {
        for (++ready; ready < 2;) std::this_thread::yield();
      };
      std::thread destroyer([&] {
        meet();
        skua_stream_destroy(stream);
      });
      meet();
      double nanoseconds = 0;
      if (round % 3 == 1) SKUA_EXPECT_OK(skua_stream_wait_event(other, end));
      if (round % 3 == 2) {
        EXPECT_NE(skua_event_nanoseconds(begin, end, &nanoseconds), SKUA_STATUS_DRIVER_ERROR) << skua_error_text();
      }
      skua_event_destroy(end);
      destroyer.join();
      skua_event_destroy(begin);
    }
    SKUA_EXPECT_OK(skua_stream_wait(other));
    skua_stream_destroy(other);
    negate.destroy_plan();
    skua_device_buffer_destroy(x);
    skua_device_buffer_destroy(y);
  }
}

// Threads make contexts of one device, compute on them and destroy them, all at once and beside another that lists
// devices; then the threads end, with what drivers keep for each of them. Between two rounds no context is left, and
// the driver is still there.
TEST(GpuLifetime, ContextsOfSeveralThreadsComeAndGo) {
  SKUA_NEED_GPU(devices);
  const Values v;
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    for (int round = 0; round < 3; ++round) {
      constexpr int kThreads = 4;
      std::atomic<int> ready{0}, made{0};
      const auto meet = [](std::atomic<int>& count, int n) {
        for (++count; count < n;) std::this_thread::yield();
      };
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
          meet(ready, kThreads + 1);
          for (int turn = 0; turn < 2; ++turn) {
            Context gpu(device);
            if (turn == 0 && round % 2) meet(made, kThreads);  // all of them are there at once
            if (!gpu.context) continue;
            Negation negate(gpu);
            skua_device_buffer *x = nullptr, *y = nullptr;
            for (skua_device_buffer** b : {&x, &y}) SKUA_EXPECT_OK(skua_device_buffer_create(gpu, kBytes, b));
            SKUA_EXPECT_OK(skua_device_buffer_write(x, 0, v.x.data(), kBytes));
            skua_stream* stream = nullptr;
            SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
            const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
            for (int n = 0; n <= i; ++n)
              SKUA_EXPECT_OK(skua_plan_enqueue(negate.plan, &in, 1, &out, 1, nullptr, stream));
            SKUA_EXPECT_OK(skua_stream_wait(stream));
            std::vector<float> got = read(y);
            for (float& f : got) f = -f;
            EXPECT_EQ(got, v.x);
            skua_stream_destroy(stream);
            skua_device_buffer_destroy(x);
            skua_device_buffer_destroy(y);
          }
        });
      threads.emplace_back([&] {
        meet(ready, kThreads + 1);
        for (int i = 0; i < 3; ++i) EXPECT_GT(skua_device_list(nullptr, 0), devices.size());
      });
      for (std::thread& thread : threads) thread.join();
    }
  }
}

}  // namespace
