#include "gpu/maps.h"

#include <skua/elementwise.h>

namespace skua::gpu {

Fused fused(const skua_activation& a) {
  int32_t kind = -1;
  switch (a.kind) {
    case SKUA_ACTIVATION_NONE: break;
    case SKUA_ACTIVATION_RELU: kind = SKUA_UNARY_RELU; break;
    case SKUA_ACTIVATION_RELU6: kind = SKUA_UNARY_RELU6; break;
    case SKUA_ACTIVATION_CLAMP: kind = SKUA_UNARY_CLAMP; break;
    case SKUA_ACTIVATION_LEAKY_RELU: kind = SKUA_UNARY_LEAKY_RELU; break;
    case SKUA_ACTIVATION_ELU: kind = SKUA_UNARY_ELU; break;
    case SKUA_ACTIVATION_SIGMOID: kind = SKUA_UNARY_SIGMOID; break;
    case SKUA_ACTIVATION_TANH: kind = SKUA_UNARY_TANH; break;
    case SKUA_ACTIVATION_HARD_SIGMOID: kind = SKUA_UNARY_HARD_SIGMOID; break;
    case SKUA_ACTIVATION_HARD_SWISH: kind = SKUA_UNARY_HARD_SWISH; break;
    case SKUA_ACTIVATION_SILU: kind = SKUA_UNARY_SILU; break;
    case SKUA_ACTIVATION_MISH: kind = SKUA_UNARY_MISH; break;
    case SKUA_ACTIVATION_GELU: kind = SKUA_UNARY_GELU; break;
    case SKUA_ACTIVATION_GELU_TANH: kind = SKUA_UNARY_GELU_TANH; break;
    case SKUA_ACTIVATION_KIND_COUNT: break;  // none: check_activation()
  }
  return {kind, a.a, a.b};
}

skua_status need_small(const skua_op* op, const skua_plan* plan) {
  for (size_t i = 0; i < plan->n_inputs + plan->n_outputs; ++i) {
    const bool in = i < plan->n_inputs;
    const skua_span s = in ? plan->input_spans[i] : plan->output_spans[i - plan->n_inputs];
    if (s.bytes / s.element > INT32_MAX)
      return SKUA_UNSUPPORTED_("%s: %s %zu reaches over %zu elements, kernels for %s count up to 2^31", op->cls->name,
                               in ? "input" : "output", in ? i : i - plan->n_inputs, s.bytes / s.element,
                               op->ctx->gpu->api->name);
  }
  return SKUA_STATUS_OK;
}

skua_status need_pairs(const skua_op* op, const Named* values, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (values[i].value > kMostPair)
      return SKUA_UNSUPPORTED_("%s: %s is %zu, the kernels for %s take %zu at most", op->cls->name, values[i].name,
                               values[i].value, op->ctx->gpu->api->name, kMostPair);
  return SKUA_STATUS_OK;
}

}  // namespace skua::gpu
