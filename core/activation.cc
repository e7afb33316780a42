#include "core/activation.h"

#include <math.h>
#include <skua/elementwise.h>
#include "core/families.h"

namespace skua {

skua_status resolve_activation(const skua_op* op, const skua_activation& from, Activation& to, Element element) {
  to = {-INFINITY, INFINITY, nullptr, from.a, from.b};
  skua_unary_kind unary = SKUA_UNARY_RELU;
  switch (from.kind) {
    case SKUA_ACTIVATION_NONE: return SKUA_STATUS_OK;
    case SKUA_ACTIVATION_RELU: to.low = 0; return SKUA_STATUS_OK;
    case SKUA_ACTIVATION_RELU6: to.low = 0; to.high = 6; return SKUA_STATUS_OK;
    case SKUA_ACTIVATION_CLAMP: to.low = from.a; to.high = from.b; return SKUA_STATUS_OK;
    case SKUA_ACTIVATION_LEAKY_RELU: unary = SKUA_UNARY_LEAKY_RELU; break;
    case SKUA_ACTIVATION_ELU: unary = SKUA_UNARY_ELU; break;
    case SKUA_ACTIVATION_SIGMOID: unary = SKUA_UNARY_SIGMOID; break;
    case SKUA_ACTIVATION_TANH: unary = SKUA_UNARY_TANH; break;
    case SKUA_ACTIVATION_HARD_SIGMOID: unary = SKUA_UNARY_HARD_SIGMOID; break;
    case SKUA_ACTIVATION_HARD_SWISH: unary = SKUA_UNARY_HARD_SWISH; break;
    case SKUA_ACTIVATION_SILU: unary = SKUA_UNARY_SILU; break;
    case SKUA_ACTIVATION_MISH: unary = SKUA_UNARY_MISH; break;
    case SKUA_ACTIVATION_GELU: unary = SKUA_UNARY_GELU; break;
    case SKUA_ACTIVATION_GELU_TANH: unary = SKUA_UNARY_GELU_TANH; break;
    case SKUA_ACTIVATION_KIND_COUNT: break;  // none: check_activation()
  }
  to.kernel = find_kernel(op->ctx, elementwise_tables, KernelKind::unary, int(unary), element);
  return to.kernel ? SKUA_STATUS_OK
                   : SKUA_UNSUPPORTED_("%s: activation %s has no kernel in this build", op->cls->name,
                                       activation_name(from.kind));
}

}  // namespace skua
