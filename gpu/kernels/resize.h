// What resizes share: the arguments, the place of a thread's output and of what it reads. Coordinates are quotients of
// integers, as on the CPU.
CONSTANT(0, BILINEAR, 0)
CONSTANT(1, COORDINATES, 0)  // skua_resize_coordinates
#if BYTES
CONSTANT(2, FLIP, 0)         // 1: u8
#endif
// n channels, steps and offsets in units of V
ARGS(int n; int out_w; int out_h; int in_w; int in_h; int planes; int x_offset; int x_batch; int x_plane; int x_row;
     int x_pixel; int y_offset; int y_batch; int y_plane; int y_row; int y_pixel;)

FUNCTION int nearest(int o, int extent, int to) {
  int i = o * extent / to;
  if (COORDINATES == 0) {
    int num = (2 * o + 1) * extent, den = 2 * to;
    i = num / den + (num % den != 0 ? 1 : 0) - 1;
  } else if (COORDINATES == 1) {
    int num = o * (extent - 1), den = to > 1 ? to - 1 : 1, rest = num % den;
    i = num / den;
    if (2 * rest > den || (2 * rest == den && i % 2 == 1)) i++;
  }
  return min(i, extent - 1);
}
FUNCTION int numerator(int o, int extent, int to) {
  if (COORDINATES == 0) return max((2 * o + 1) * extent - to, 0);
  return COORDINATES == 1 ? o * (extent - 1) : o * extent;
}
FUNCTION int denominator(int to) { return COORDINATES == 0 ? 2 * to : COORDINATES == 1 ? max(to - 1, 1) : to; }
// A thread's place: V channels of TX neighbouring pixels of a row, and what they read and write.
#define RESIZE_PLACE                                                                             \
  int c = GLOBAL(0), ox = GLOBAL(1) * TX, oy = GLOBAL(2) % p.out_h, image = GLOBAL(2) / p.out_h; \
  if (c >= p.n || ox >= p.out_w) return;                                                         \
  int from = p.x_offset + image / p.planes * p.x_batch + image % p.planes * p.x_plane + c;       \
  int to = p.y_offset + image / p.planes * p.y_batch + image % p.planes * p.y_plane + oy * p.y_row + ox * p.y_pixel + c;
#define RESIZE_ROWS                                                                                       \
  int den_x = denominator(p.out_w), num_y = numerator(oy, p.in_h, p.out_h), den_y = denominator(p.out_h); \
  int y0 = min(num_y / den_y, p.in_h - 1), y1 = min(y0 + 1, p.in_h - 1), top = from + y0 * p.x_row,       \
      bottom = from + y1 * p.x_row;
#define RESIZE_COLUMNS \
  int num_x = numerator(ox + i, p.in_w, p.out_w), x0 = min(num_x / den_x, p.in_w - 1), x1 = min(x0 + 1, p.in_w - 1);
