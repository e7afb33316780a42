// The report as one HTML file: styles and drawings inline, nothing loaded from anywhere.
#include <map>

#include <skua/skua.h>
#include "report_html.h"

namespace bench {
namespace {

const char* const style = R"css(
:root{--ink:#17212b;--soft:#5c6b7a;--line:#dde4ea;--paper:#fff;--back:#f4f6f8;--ours:#0b7a75;
--good:#0a7d43;--bad:#c0392b;--p0:#f2a33a;--p1:#5b8def;--p2:#a78bda;--p3:#9aa7b3}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf0;--soft:#93a1af;--line:#2c3742;--paper:#161d24;--back:#0f151a;
--ours:#2fb9ae;--good:#4cc98a;--bad:#ff7b6b;--p0:#f2b35c;--p1:#7ea8ff;--p2:#bda6ea;--p3:#77848f}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 24px 80px}
h1{font-size:30px;margin:0 0 4px;letter-spacing:-.02em}
h2{font-size:20px;margin:44px 0 12px;letter-spacing:-.01em}
h3{font-size:15px;margin:24px 0 8px}
p{margin:6px 0;max-width:80ch}.soft{color:var(--soft)}
.card{background:var(--paper);border:1px solid var(--line);border-radius:10px;
padding:16px 20px;margin:12px 0;overflow-x:auto}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:12px;margin:20px 0}
.tile{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:14px 18px}
.tile b{display:block;font-size:26px;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:1px solid var(--line);
padding:4px 10px 6px 0;white-space:nowrap}
td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:middle;white-space:nowrap}
tr:last-child td,tr:last-child th{border-bottom:0}
td.n,th.n{text-align:right}
td.k{white-space:normal;overflow-wrap:anywhere;min-width:160px}
code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.bars{width:300px;min-width:180px}
.bar{height:7px;border-radius:0 3px 3px 0;margin:1px 0;min-width:1px}
.ours{background:var(--ours)}
.p0{background:var(--p0)}.p1{background:var(--p1)}.p2{background:var(--p2)}.p3{background:var(--p3)}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:600}
.split{display:flex;height:9px;width:200px;border-radius:3px;overflow:hidden}.split i{display:block;height:9px}
.l0{background:#2a6f97}.l1{background:#8ecae6}.l2{background:#ffd166}.l3{background:#b08968}
.l4{background:#d16ba5}.l5{background:#6c757d}.l6{background:#e76f51}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;font-size:13px;color:var(--soft);margin:4px 0 10px}
.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.series{display:grid;grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:0 12px}
details summary{cursor:pointer;color:var(--soft);margin:8px 0}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}
)css";

void machine_section(Html& h, const Session& s) {
  const Machine& m = s.machine;
  if (on_device()) {
    h.raw(
        "<h2>This device</h2><div class=card><table><tr><th>Device<td>%s, %s, %zu compute "
        "units<tr><th>Driver<td>%s<tr><th>Features<td>%s</table></div>\n",
        escape(m.cpu).c_str(), m.isa.c_str(), m.cores, escape(s.device.driver).c_str(), escape(m.features).c_str());
    if (s.device.is_software)
      h.raw("<p class=bad>This device computes on the CPU: its times say nothing about GPUs.</p>\n");
  } else {
    h.raw(
        "<h2>This machine</h2><div class=card><table><tr><th>CPU<td class=k>%s, %zu cores%s<tr><th>Instruction sets<td "
        "class=k>%s",
        escape(m.cpu).c_str(), m.cores, m.mhz > 0 ? text(", %.0f MHz as stated", m.mhz).c_str() : "",
        escape(m.features).c_str());
    h.raw("<tr><th>Caches<td>L1 %zu KiB, L2 %zu KiB, L3 %zu KiB", m.cache[0] >> 10, m.cache[1] >> 10, m.cache[2] >> 10);
    h.raw("<tr><th>Threads<td>%d%s%s</table></div>\n", first_threads(s),
          m.pinned >= 0 ? text(", the first on core %d", m.pinned).c_str() : "",
          m.governor.empty() ? "" : (", governor " + escape(m.governor)).c_str());
  }
  double top = 1, wide = 1;
  for (const auto& p : m.peaks) top = std::max(top, p.gflops);
  for (const auto& l : m.levels) wide = std::max({wide, l.read, l.copy});
  h.raw("<div class=card><table><tr><th>Multiply-adds<th><th class=n>GFLOP/s</tr>");
  for (const auto& p : m.peaks)
    h.raw(
        "<tr><td>%s %s<td class=bars style=\"width:60%%\"><div class=\"bar ours\" style=\"width:%.1f%%\"></div><td "
        "class=n>%.1f",
        p.isa.c_str(), skua_dtype_name(p.type), 100 * p.gflops / top, p.gflops);
  if (!m.converts.empty())
    h.raw(
        "</table></div><div class=card><table><tr><th>Conversions, GB/s of halves<th class=n>f16 to f32<th class=n>f32 "
        "to f16<th class=n>bf16 to f32<th class=n>f32 to bf16</tr>");
  for (size_t i = 0; i + 1 < m.converts.size(); i += 2)
    h.raw("<tr><td>%s<td class=n>%.1f<td class=n>%.1f<td class=n>%.1f<td class=n>%.1f", m.converts[i].isa.c_str(),
          m.converts[i].widen, m.converts[i].narrow, m.converts[i + 1].widen, m.converts[i + 1].narrow);
  h.raw(
      "</table></div><div class=card><table><tr><th>Bandwidth<th>of<th><th class=n>read GB/s<th class=n>copy "
      "GB/s</tr>");
  for (const auto& l : m.levels)
    h.raw(
        "<tr><td>%s<td>%s<td class=bars style=\"width:50%%\"><div class=\"bar ours\" style=\"width:%.1f%%\"></div><div "
        "class=\"bar p3\" style=\"width:%.1f%%\"></div><td class=n>%.0f<td class=n>%.0f",
        l.name, l.bytes >= (1u << 20) ? text("%zu MiB", l.bytes >> 20).c_str() : text("%zu KiB", l.bytes >> 10).c_str(),
        100 * l.read / wide, 100 * l.copy / wide, l.read, l.copy);
  h.raw("</table></div>\n");
}

void roofline(Html& h, const Session& s) {
  struct Point {
    double x, y;
    const Result* r;
  };
  static const char* const colours[] = {"var(--ours)", "var(--p1)", "var(--p0)", "var(--p2)"};
  static const char* const ops[] = {"gemm", "conv2d", "depthwise", "conv2d_transpose"};
  std::vector<Point> points;
  for (const Result& r : s.results)
    if (r.suite == "layers" && r.threads == first_threads(s) && r.error.empty() && r.flops > 0)
      points.push_back({r.flops / r.bytes, r.gflops, &r});
  if (points.size() < 3 || s.machine.peaks.empty()) return;
  const int cores = on_device() ? 1 : first_threads(s);
  const double peak = s.machine.peak(s.machine.isa) * cores;
  const double x0 = 0.1, x1 = 1000, y0 = peak / 300, y1 = peak * 6, width = 1080, height = 460, left = 60, bottom = 40,
               right = 24;
  const auto px = [&](double x) {
    return left + (width - left - right) * log(std::clamp(x, x0, x1) / x0) / log(x1 / x0);
  };
  const auto py = [&](double y) {
    return (height - bottom) - (height - bottom - 10) * log(std::clamp(y, y0, y1) / y0) / log(y1 / y0);
  };
  h.raw(
      "<h2>Roofline</h2><p class=soft>Each point is a layer: its arithmetic intensity (flops of the direct formula per "
      "byte of operands) and the rate reached. Lines: what this %s can do "
      "with the operands in a level of the cache. Winograd needs fewer multiplications than the direct formula and may "
      "lie above the roof.</p><div class=card>",
      on_device() ? "device" : "core");
  h.raw("<div class=legend>");
  for (int i = 0; i < 4; ++i)
    if (std::any_of(points.begin(), points.end(), [&](const Point& p) { return p.r->op == ops[i]; }))
      h.raw("<span><i style=\"background:%s;border-radius:6px\"></i>%s</span>", colours[i], ops[i]);
  h.raw("</div><svg viewBox=\"0 0 %.0f %.0f\" width=\"100%%\">", width, height);
  for (double x : {0.1, 1.0, 10.0, 100.0, 1000.0})
    h.raw(
        "<line x1=%.1f x2=%.1f y1=10 y2=%.1f stroke=\"var(--line)\"/><text x=%.1f y=%.1f text-anchor=middle>%g</text>",
        px(x), px(x), height - bottom, px(x), height - bottom + 18, x);
  for (double y = pow(10, ceil(log10(y0))); y <= y1; y *= 10)
    h.raw("<line x1=%.1f x2=%.1f y1=%.1f y2=%.1f stroke=\"var(--line)\"/><text x=%.1f y=%.1f text-anchor=end>%g</text>",
          left, width - right, py(y), py(y), left - 8, py(y) + 4, y);
  h.raw(
      "<text x=%.1f y=%.1f text-anchor=middle>flops per byte</text><text x=14 y=%.1f transform=\"rotate(-90 14 %.1f)\" "
      "text-anchor=middle>GFLOP/s</text>",
      (width + left) / 2, height - 4, height / 2, height / 2);
  for (const Level& l : s.machine.levels) {
    const double bandwidth = std::max(l.read, l.copy) * cores, knee = peak / bandwidth;
    h.raw(
        "<polyline points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=none stroke=\"var(--soft)\" stroke-width=1.2 "
        "stroke-dasharray=\"5 4\"/>",
        px(std::max(x0, y0 / bandwidth)), py(std::max(x0 * bandwidth, y0)), px(knee), py(peak), px(x1), py(peak));
    const double at = std::max(x0 * 1.3, y0 * 1.8 / bandwidth);
    const double slope = -atan((py(10 * y0) - py(y0)) / (px(10 * x0) - px(x0))) * 180 / M_PI;
    h.raw("<text transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s %.0f GB/s</text>", px(at), py(at * bandwidth) - 6,
          -slope, l.name, bandwidth);
  }
  double last = -100;
  for (const auto& p : s.machine.peaks)
    if (p.gflops * cores >= y0) {
      if (fabs(py(p.gflops * cores) - last) < 14) continue;  // equal ones: one line
      last = py(p.gflops * cores);
      h.raw(
          "<line x1=%.1f x2=%.1f y1=%.1f y2=%.1f stroke=\"var(--soft)\" stroke-width=%s /><text x=%.1f y=%.1f "
          "text-anchor=end>%s %s %.0f GFLOP/s</text>",
          px(x1 / 6), px(x1), py(p.gflops * cores), py(p.gflops * cores), p.isa == s.machine.isa ? "2" : "0.7",
          width - right - 4, py(p.gflops * cores) - 5, p.isa.c_str(), skua_dtype_name(p.type), p.gflops * cores);
    }
  for (const Point& p : points)
    for (int i = 0; i < 4; ++i)
      if (p.r->op == ops[i])
        h.raw("<circle cx=%.1f cy=%.1f r=4.2 fill=\"%s\" fill-opacity=.75><title>%s: %.1f GFLOP/s, %s</title></circle>",
              px(p.x), py(p.y), colours[i], escape(p.r->name).c_str(), p.y, duration(p.r->ns).c_str());
  h.raw("</svg></div>\n");
}

const char* const causes[7] = {"compute at peak (model)", "bandwidth (model)", "edge (model)",     "packing (measured)",
                               "transforms (measured)",   "driver (measured)", "kernel (the rest)"};
std::string causes_legend() {
  std::string out = "<div class=legend>";
  for (int i = 0; i < 7; ++i) out += text("<span><i class=l%d></i>%s</span>", i, causes[i]);
  return out + "</div>";
}
void split(Html& h, const Loss& l) {
  const double parts[7] = {l.compute, l.bandwidth, l.edge, l.copy, l.transform, l.driver, l.kernel};
  h.raw("<div class=split>");
  for (int i = 0; i < 7; ++i)
    if (parts[i] > 0.002)
      h.raw("<i class=l%d style=\"width:%.1f%%\" title=\"%s: %.0f%%\"></i>", i, 100 * parts[i], causes[i],
            100 * parts[i]);
  h.raw("</div>");
}

void networks_section(Html& h, const Session& s) {
  bool any = false;
  const bool halves = any_halves(s);
  for (const Result& r : s.results) any |= r.suite == "networks";
  if (!any) return;
  h.raw(
      "<h2>Networks</h2><p class=soft>One image, %d thread%s. The same weights, chain of operators and memory plan for "
      "everybody; what a peer does not fuse runs as operators of its own. "
      "Bars: speed, longer is faster. <b>against best</b> compares with the best peer of the same type, <b>against "
      "f32</b> with our own f32 network; <b>distance</b>: the largest difference of the scores from its, as a share of "
      "the largest score. <b>of peak</b> counts the direct formula, of which Winograd multiplies less. Layers are "
      "timed one by one: their sum leaves out what a network loses between them.</p><div class=card>",
      first_threads(s), first_threads(s) > 1 ? "s" : "");
  legend(h, s, "networks");
  h.raw("<table><tr><th>Network<th>Speed<th class=n>skua");
  for (const auto& p : s.peers)
    if (peer_colour(p->name()) < 2) h.raw("<th class=n>%s", p->name());
  h.raw("<th class=n>GFLOP/s<th class=n>of peak<th class=n>against best%s</tr>",
        on_device() ? "<th class=n>distance<th class=n>programs<th class=n>host, an operator<th class=n>start<th "
                      "class=n>from the cache"
        : halves    ? "<th class=n>against f32<th class=n>distance"
                    : "");
  for (const Result& r : s.results) {
    if (r.suite != "networks") continue;
    h.raw("<tr><td><b>%s</b>%s%s", escape(r.name.substr(r.name.find('/') + 1)).c_str(), type_note(r).c_str(),
          thread_note(s, r).c_str());
    if (!r.error.empty()) {
      h.raw("<td colspan=9 class=soft>%s", escape(r.error).c_str());
      continue;
    }
    bars(h, r.ns, r.peers);
    h.raw("<td class=n>%s", duration(r.ns).c_str());
    for (const auto& p : s.peers) {
      if (peer_colour(p->name()) >= 2) continue;
      std::string time = "–";
      for (const PeerTime& t : r.peers)
        if (t.name == p->name()) time = duration(t.ns);
      h.raw("<td class=n>%s", time.c_str());
    }
    h.raw("<td class=n>%.1f<td class=n>%.0f%%<td class=n>%s", r.gflops, 100 * r.peak_share,
          verdict(r.ns, r.noise, r.best_peer()).c_str());
    if (on_device())
      h.raw("<td class=n>%.2g<td class=n>%zu<td class=n>%s<td class=n>%s<td class=n>%s", r.distance, r.warm.programs,
            duration(r.record_ns).c_str(), duration(r.cold.ns()).c_str(), duration(r.warm.ns()).c_str());
    if (r.f32.ns > 0) h.raw("<td class=n>%s<td class=n>%.2g", verdict(r.ns, r.noise, &r.f32).c_str(), r.distance);
  }
  h.raw("</table></div>\n");
  for (const Result& r : s.results) {
    if (r.suite != "networks" || r.steps.empty()) continue;
    double sum = 0;
    for (const StepTime& t : r.steps) sum += t.ns;
    h.raw(
        "<details><summary>%s%s, layer by layer</summary><div class=card>%s<table><tr><th "
        "class=n>#<th>Layer<th>Speed<th class=n>skua<th class=n>share of time<th>Its time goes to<th class=n>GFLOP/s",
        escape(r.name).c_str(), thread_note(s, r).c_str(),
        on_device() || r.threads != 1 ? "" : causes_legend().c_str());
    for (const PeerTime& p : r.peers) h.raw("<th class=n>%s", p.name.c_str());
    h.raw("<th>Algorithm, kernel</tr>");
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const StepTime& t = r.steps[i];
      h.raw("<tr><td class=n>%zu<td><code>%s</code>", i + 1, escape(t.name).c_str());
      bars(h, t.ns, t.peers);
      h.raw("<td class=n>%s<td class=n>%.1f%%<td>", duration(t.ns).c_str(), 100 * t.ns / sum);
      if (on_device()) h.raw("%.0f%% of the device's limit", 100 * t.peak_share);
      else if (r.threads == 1) split(h, t.loss);
      h.raw("<td class=n>%s", t.gflops > 0 ? text("%.0f", t.gflops).c_str() : "");
      for (const PeerTime& p : t.peers) h.raw("<td class=n>%s", duration(p.ns).c_str());
      h.raw("<td class=k><code>%s%s%s</code>", escape(t.algorithm).c_str(), t.algorithm.empty() ? "" : " ",
            escape(t.kernel).c_str());
    }
    h.raw("</table></div></details>\n");
  }
}

void layers_section(Html& h, const Session& s) {
  std::vector<std::string> ops;
  for (const Result& r : s.results)
    if (r.suite == "layers" && std::find(ops.begin(), ops.end(), r.op) == ops.end()) ops.push_back(r.op);
  if (ops.empty()) return;
  h.raw(
      "<h2>Layers</h2><p class=soft>Bars: speed, longer is faster. <b>of roofline</b>: of the shortest time in which "
      "this core could do the layer's multiply-adds and move its operands. "
      "<b>against best</b>: the best peer's time over ours, grey where the noise is larger than the difference. "
      "<b>against f32</b>: our own f32 layer's time over that of a half type, or of quantised weights under f32 maps. "
      "<b>regret</b>: how much faster the best forced algorithm or tile was.</p>");
  const bool halves = any_halves(s);
  for (const std::string& op : ops) {
    h.raw("<h3>%s</h3>", op.c_str());
    for (skua_dtype type : s.options.types) {
      Mean mean;
      for (const Result& r : s.results)
        if (r.suite == "layers" && r.threads == first_threads(s) && r.op == op && r.type == type && r.error.empty())
          mean.add(r);
      if (!mean.cases) continue;
      h.raw("<p class=soft>%s: %.2f× the best peer (geometric mean of %zu), faster in %zu", skua_dtype_name(type),
            mean.ratio(), mean.cases, mean.wins);
      if (mean.regret_cases) h.raw("; regret %.1f%%", 100 * mean.regret());
      h.raw("</p>");
    }
    h.raw("<div class=card>");
    legend(h, s, "layers", op);
    h.raw(
        "<table><tr><th>Layer<th>Speed<th class=n>skua<th class=n>%s<th class=n>of roofline<th>best peer<th "
        "class=n>against best%s<th class=n>regret<th>Algorithm, kernel</tr>",
        op == "gemm" || op == "matmul" || op == "depthwise" || op.find("conv") != std::string::npos ? "GFLOP/s"
                                                                                                    : "GB/s",
        halves ? "<th class=n>against f32" : "");
    for (const Result& r : s.results) {
      if (r.suite != "layers" || r.op != op) continue;
      h.raw("<tr><td><code>%s</code>%s%s", escape(r.name.substr(r.name.find('/') + 1)).c_str(), type_note(r).c_str(),
            thread_note(s, r).c_str());
      if (!r.error.empty()) {
        h.raw("<td colspan=9 class=soft>%s", escape(r.error).c_str());
        continue;
      }
      bars(h, r.ns, r.peers);
      const PeerTime* best = r.best_peer();
      h.raw("<td class=n>%s<td class=n>%.1f<td class=n>%s<td>%s<td class=n>%s", duration(r.ns).c_str(),
            r.gflops > 0 ? r.gflops : r.bandwidth, r.peak_share >= 0 ? text("%.0f%%", 100 * r.peak_share).c_str() : "",
            best ? best->name.c_str() : "", verdict(r.ns, r.noise, best).c_str());
      if (halves) h.raw("<td class=n>%s", verdict(r.ns, r.noise, r.f32.ns > 0 ? &r.f32 : nullptr).c_str());
      h.raw("<td class=n title=\"%s\">%s<td class=k><code>%s %s</code>", escape(r.best_forced).c_str(),
            r.regret >= 0 ? text("%.0f%%", 100 * r.regret).c_str() : "", escape(r.algorithm).c_str(),
            escape(r.kernel).c_str());
    }
    h.raw("</table></div>\n");
  }
}

void scaling_section(Html& h, const Session& s) {
  bool any = false;
  for (const Result& r : s.results) any |= (r.suite == "layers" || r.suite == "networks") && s.one_thread(r);
  if (!any) return;
  h.raw(
      "<h2>Threads</h2><p class=soft>Time with one thread over the time with several, for cases of more than a "
      "millisecond. A contestant's workers sleep while another has its turn.</p>"
      "<div class=card><table><tr><th>Case<th class=n>threads<th class=n>skua, one<th class=n>skua<th class=n>scaling");
  for (const auto& p : s.peers) h.raw("<th class=n>%s", p->name());
  for (const Result& r : s.results) {
    const Result* one = r.suite == "layers" || r.suite == "networks" ? s.one_thread(r) : nullptr;
    if (!one || one->ns < 1e6) continue;
    const double scaling = one->ns / r.ns;
    h.raw("<tr><td><code>%s</code><td class=n>%d<td class=n>%s<td class=n>%s<td class=n><span class=%s>%.2f×</span>",
          escape(r.name).c_str(), r.threads, duration(one->ns).c_str(), duration(r.ns).c_str(),
          scaling >= 1.85 * r.threads / 2 ? "good" : "bad", scaling);
    for (const auto& p : s.peers) {
      std::string cell;
      for (const PeerTime& q : r.peers)
        for (const PeerTime& o : one->peers)
          if (q.name == p->name() && o.name == q.name) cell = text("%.2f×", o.ns / q.ns);
      h.raw("<td class=n>%s", cell.c_str());
    }
  }
  h.raw("</table></div>\n");
}

void kernels_section(Html& h, const Session& s) {
  bool any = false;
  for (const Result& r : s.results) any |= r.suite == "kernels";
  if (!any) return;
  h.raw(
      "<h2>Kernels</h2><p class=soft>Every kernel a plan can be made to name, on operands in the first two cache "
      "levels, against the peak of its own instruction set (or the bandwidth, where that "
      "binds).</p><div class=card><table><tr><th>Kernel<th>Share<th class=n><th class=n>GFLOP/s<th class=n>GB/s<th "
      "class=n>time</tr>");
  for (const Result& r : s.results) {
    if (r.suite != "kernels") continue;
    if (!r.error.empty()) {
      h.raw("<tr><td><code>%s</code><td colspan=5 class=bad>%s", escape(r.name).c_str(), escape(r.error).c_str());
      continue;
    }
    h.raw(
        "<tr><td><code>%s</code><td class=bars><div class=\"bar ours\" style=\"width:%.1f%%\"></div><td "
        "class=n>%.0f%%<td class=n>%s<td class=n>%.1f<td class=n>%s",
        escape(r.name).c_str(), 100 * std::clamp(r.peak_share, 0.0, 1.0), 100 * std::max(r.peak_share, 0.0),
        r.gflops > 0 ? text("%.1f", r.gflops).c_str() : "", r.bandwidth, duration(r.ns).c_str());
  }
  h.raw("</table></div>\n");
}

// A curve for each series, steps marked.
void steps_section(Html& h, const Session& s) {
  bool any = false;
  for (const Result& r : s.results) any |= r.worst_step >= 0;
  if (!any) return;
  h.raw(
      "<h2>Steps</h2><p class=soft>Time by one extent, each series scaled to its longest. A mark: this layer takes "
      "more than 10%% longer than a larger one (confirmed in three races of the two), so padding it would be "
      "faster.</p><div class=series>");
  for (const Result& r : s.results) {
    if (r.worst_step < 0 || r.steps.size() < 2) continue;
    double longest = 0;
    for (const StepTime& t : r.steps) longest = std::max(longest, t.ns);
    const auto px = [&](size_t i) { return 6 + 328 * double(i) / double(r.steps.size() - 1); };
    const auto py = [&](double ns) { return 104 - 94 * ns / longest; };
    h.raw(
        "<div class=card><code>%s</code>%s%s<svg viewBox=\"0 0 340 110\" width=\"100%%\"><polyline fill=none "
        "stroke=\"var(--ours)\" stroke-width=1.5 points=\"",
        escape(r.name).c_str(), type_note(r).c_str(), thread_note(s, r).c_str());
    for (size_t i = 0; i < r.steps.size(); ++i) h.raw("%.1f,%.1f ", px(i), py(r.steps[i].ns));
    h.raw("\"/>");
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const StepTime& t = r.steps[i];
      const bool step = !t.larger.empty();
      h.raw("<circle cx=%.1f cy=%.1f r=%s fill=\"var(--%s)\"><title>%s: %s, %s %s%s</title></circle>", px(i), py(t.ns),
            step ? "4" : "2", step ? "bad" : "ours", escape(t.name).c_str(), duration(t.ns).c_str(),
            escape(t.algorithm).c_str(), escape(t.kernel).c_str(),
            step ? text("; %.0f%% longer than %s", 100 * t.longer, escape(t.larger).c_str()).c_str() : "");
    }
    h.raw("</svg><span class=soft>%s at the end</span></div>\n", duration(r.steps.back().ns).c_str());
  }
  h.raw("</div>\n");
}

void overhead_section(Html& h, const Session& s) {
  bool any = false;
  for (const Result& r : s.results) any |= r.suite == "overhead";
  if (!any) return;
  h.raw(
      "<h2>Calls</h2><p class=soft>What create, plan and run cost themselves.</p><div "
      "class=card><table><tr><th>Call<th class=n>skua<th>peers</tr>");
  for (const Result& r : s.results) {
    if (r.suite != "overhead") continue;
    h.raw("<tr><td><code>%s</code><td class=n>%s<td class=soft>", escape(r.name).c_str(),
          r.error.empty() ? duration(r.ns).c_str() : escape(r.error).c_str());
    for (const PeerTime& p : r.peers)
      h.raw("%s%s %s", &p == &r.peers[0] ? "" : ", ", p.name.c_str(), duration(p.ns).c_str());
  }
  h.raw("</table></div>\n");
}

}  // namespace

bool write_html(const Session& s, const std::string& path) {
  Html h{fopen(path.c_str(), "w")};
  if (!h.f) return false;
  const std::string cpu = s.machine.cpu.empty() ? "an unknown CPU" : s.machine.cpu;
  h.raw(
      "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>Skua on %s</title><style>",
      escape(cpu).c_str());
  fputs(style, h.f);
  h.raw(
      "</style></head><body><main><h1>Skua on %s</h1><p class=soft>skua %s, %s, %d thread%s%s%s. Medians of "
      "alternating samples%s.</p>",
      escape(cpu).c_str(), skua_version_string(), s.machine.isa.c_str(), first_threads(s),
      first_threads(s) > 1 ? "s" : "", s.options.quick ? ", quick run" : "",
      bench_numerics == SKUA_NUMERICS_DEFAULT ? ""
                                              : (std::string(", numerics ") + numerics_name(bench_numerics)).c_str(),
      on_device()             ? " by the device's own clock; threads are the CPU's beside it"
      : first_threads(s) == 1 ? " of the thread's own time"
                              : "");
  if (s.machine.busy()) h.raw("<p class=bad>Other work was running (load %.1f): expect noise.</p>\n", s.machine.load);
  h.raw("<div class=tiles>");
  std::map<std::string, Mean> by_op;
  for (const Result& r : s.results)
    if (r.error.empty() && r.threads == first_threads(s) && (r.suite == "layers" || r.suite == "networks"))
      by_op[(r.suite == "networks" ? "networks" : r.op) +
            (r.type == SKUA_DTYPE_F32 ? "" : std::string(", ") + skua_dtype_name(r.type))]
          .add(r);
  if (!s.machine.peaks.empty())
    tile(h, text("%.0f", s.machine.peak(s.machine.isa)),
         (on_device() ? "GFLOP/s: measured peak, " : "GFLOP/s: peak of one core, ") + s.machine.isa);
  for (const char* op : {"networks", "networks, f16", "networks, bf16", "conv2d", "depthwise", "gemm", "unary",
                         "binary", "max_pool", "softmax"})
    if (by_op[op].cases)
      tile(h, text("%.2f×", by_op[op].ratio()),
           std::string(op) + text(" against the best peer, mean of %zu", by_op[op].cases));
  if (s.unsupported) tile(h, text("%zu", s.unsupported), "cases unsupported in this build");
  if (s.wrong) tile(h, text("<span class=bad>%zu</span>", s.wrong), "cases with wrong results");
  h.raw("</div>\n");
  machine_section(h, s);
  roofline(h, s);
  networks_section(h, s);
  layers_section(h, s);
  scaling_section(h, s);
  kernels_section(h, s);
  overhead_section(h, s);
  steps_section(h, s);
  h.raw("</main></body></html>\n");
  return fclose(h.f) == 0;
}

}  // namespace bench
