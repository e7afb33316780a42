// The activations that operators fuse and the unary functions that they are: kind is a skua_unary_kind from 0 to 13,
// else x goes through. NaN gives NaN.
// Formulas keep their digits where 1 + e^x or e^x - 1 would lose them, and stay finite where e^x does not.
FUNCTION T sigmoid_(T x) {
  T z = AT_MOST(AT_LEAST(x, SPLAT(-80.0f)), SPLAT(30.0f));
  return SPLAT(1.0f) / (SPLAT(1.0f) + exp(-z));
}
FUNCTION T expm1_(T x) {
  T series = FMA(x,
                 FMA(x,
                     FMA(x, FMA(x, FMA(x, SPLAT(1.0f / 720.0f), SPLAT(1.0f / 120.0f)), SPLAT(1.0f / 24.0f)),
                         SPLAT(1.0f / 6.0f)),
                     SPLAT(0.5f)),
                 SPLAT(1.0f)) *
             x;
  return SELECT(LESS(ABS(x), SPLAT(0.4f)), series, exp(x) - SPLAT(1.0f));
}
FUNCTION T tanh_(T x) {
  T e = expm1_(SPLAT(2.0f) * AT_MOST(ABS(x), SPLAT(10.0f))), y = e / (e + SPLAT(2.0f));
  return SELECT(LESS(x, SPLAT(0.0f)), -y, y);
}
FUNCTION T elu_(T x, F a) { return SELECT(LESS(x, SPLAT(0.0f)), SPLAT(a) * expm1_(AT_MOST(x, SPLAT(0.0f))), x); }
// erf as in simd/math.h: an odd polynomial up to 0.92, beyond 1 - q(|x|)^8.
FUNCTION T erf_(T x) {
  T a = AT_MOST(ABS(x), SPLAT(3.92f)), t = a * a;
  T q = FMA(a,
            FMA(a,
                FMA(a,
                    FMA(a, FMA(a, FMA(a, SPLAT(0.000140026154f), SPLAT(-0.00236819824f)), SPLAT(0.0124995094f)),
                        SPLAT(-0.0104420939f)),
                    SPLAT(-0.0625437424f)),
                SPLAT(-0.144362167f)),
            SPLAT(1.00065684f));
  T r = FMA(t,
            FMA(t,
                FMA(t, FMA(t, FMA(t, SPLAT(-0.000600379542f), SPLAT(0.00499585317f)), SPLAT(-0.0267685801f)),
                    SPLAT(0.11281877f)),
                SPLAT(-0.376125008f)),
            SPLAT(0.128379151f));
  T q2 = q * q, q4 = q2 * q2;
  T y = SELECT(LESS(a, SPLAT(0.92f)), FMA(a, r, a), SPLAT(1.0f) - q4 * q4);
  return SELECT(LESS(x, SPLAT(0.0f)), -y, y);
}
// x/2 (1 + erf(x / sqrt 2)) as max(x, 0) - |x|/2 q(|x|)^4, simd/math.h's fit.
FUNCTION T gelu_(T x) {
  T a = AT_MOST(ABS(x), SPLAT(6.0f));
  T q = FMA(a,
            FMA(a,
                FMA(a, FMA(a, FMA(a, SPLAT(-9.34473832e-09f), SPLAT(2.87333165e-07f)), SPLAT(-3.41521081e-06f)),
                    SPLAT(1.71858883e-05f)),
                SPLAT(-7.48174261e-06f)),
            SPLAT(-0.000196360706f));
  q = FMA(a,
          FMA(a,
              FMA(a, FMA(a, FMA(a, FMA(a, q, SPLAT(-0.000267501629f)), SPLAT(0.00468929019f)), SPLAT(0.00545693142f)),
                  SPLAT(-0.0596827194f)),
              SPLAT(-0.199470907f)),
          SPLAT(1.0f));
  T q2 = q * q;
  T tail = SELECT(LESS(a, SPLAT(6.0f)), a * SPLAT(0.5f) * (q2 * q2), SPLAT(0.0f));
  return AT_LEAST(x, SPLAT(0.0f)) - tail;
}
FUNCTION T hard_sigmoid_(T x) {
  return AT_MOST(AT_LEAST(x * SPLAT(1.0f / 6.0f) + SPLAT(0.5f), SPLAT(0.0f)), SPLAT(1.0f));
}

FUNCTION T activate(int kind, T x, F a, F b) {
  if (kind == 0) return AT_LEAST(x, SPLAT(0.0f));
  if (kind == 1) return AT_MOST(AT_LEAST(x, SPLAT(0.0f)), SPLAT(6.0f));
  if (kind == 2) return AT_MOST(AT_LEAST(x, SPLAT(a)), SPLAT(b));
  if (kind == 3) return SELECT(LESS(x, SPLAT(0.0f)), x * SPLAT(a), x);
  if (kind == 4) return elu_(x, a);
  if (kind == 5) return SPLAT(1.0507010f) * elu_(x, 1.6732632f);
  if (kind == 6) return sigmoid_(x);
  if (kind == 7) return tanh_(x);
  if (kind == 8) return hard_sigmoid_(x);
  if (kind == 9) return x * hard_sigmoid_(x);
  if (kind == 10) return AT_LEAST(x, SPLAT(-80.0f)) * sigmoid_(x);
  if (kind == 11) {
    T y = AT_LEAST(x, SPLAT(-80.0f)), t = exp(AT_MOST(y, SPLAT(20.0f))), n = t * (t + SPLAT(2.0f));
    return y * (n / (n + SPLAT(2.0f)));
  }
  if (kind == 12) return gelu_(x);
  if (kind == 13) {
    T y = AT_LEAST(x, SPLAT(-11.0f));
    return y * sigmoid_(y * FMA(y * y, SPLAT(0.07135481627f), SPLAT(1.595769122f)));
  }
  return x;
}
