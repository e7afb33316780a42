// What the sections of the HTML report share: a file to print to, texts, bars, means.
#pragma once
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <algorithm>

#include "session.h"

namespace bench {

struct Html {
  FILE* f;
  void raw(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list args;
    va_start(args, format);
    vfprintf(f, format, args);
    va_end(args);
  }
};

// The number of threads that means and the roofline are of; rows of other numbers say so.
inline int first_threads(const Session& s) { return s.options.threads[0]; }
inline std::string thread_note(const Session& s, const Result& r) {
  return r.threads == first_threads(s) ? "" : " <span class=soft>" + std::to_string(r.threads) + " threads</span>";
}

inline std::string type_note(const Result& r) {
  return r.type == SKUA_DTYPE_F32 ? "" : std::string(" <span class=soft>") + skua_dtype_name(r.type) + "</span>";
}
inline bool any_halves(const Session& s) {
  return std::any_of(s.results.begin(), s.results.end(), [](const Result& r) { return r.f32.ns > 0; });
}

inline std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

inline std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline std::string text(const char* format, ...) {
  char buffer[512];
  va_list args;
  va_start(args, format);
  vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  return buffer;
}

inline int peer_colour(const std::string& name) {
  const auto& names = peer_names();
  return int(std::find(names.begin(), names.end(), name) - names.begin());
}

// Of the peers that have a time among these results.
inline void legend(Html& h, const Session& s, const char* suite, const std::string& op = "") {
  h.raw("<div class=legend><span><i class=ours></i>skua</span>");
  const auto raced = [&](const char* peer) {
    return std::any_of(s.results.begin(), s.results.end(), [&](const Result& r) {
      return r.suite == suite && (op.empty() || r.op == op) &&
             std::any_of(r.peers.begin(), r.peers.end(), [&](const PeerTime& t) { return t.name == peer; });
    });
  };
  for (const auto& p : s.peers)
    if (raced(p->name()))
      h.raw("<span><i class=p%d></i>%s %s</span>", peer_colour(p->name()), p->name(), escape(p->version()).c_str());
  h.raw("</div>\n");
}

// How much faster than the best peer, in green or red; plain where the noise is larger than the difference.
inline std::string verdict(double ours, double noise, const PeerTime* best) {
  if (!best) return "<span class=soft>–</span>";
  const double ratio = best->ns / ours;
  if (fabs(ratio - 1) <= noise + best->noise)
    return text("<span title=\"within the noise of %.0f%%\">%.2f×</span>", 100 * (noise + best->noise), ratio);
  return text("<span class=%s>%.2f×</span>", ratio > 1 ? "good" : "bad", ratio);
}

// Bars of speed: longer is faster; the longest fills the cell.
inline void bars(Html& h, double ours, const std::vector<PeerTime>& peers) {
  double shortest = ours;
  for (const PeerTime& p : peers) shortest = std::min(shortest, p.ns);
  h.raw("<td class=bars><div class=\"bar ours\" style=\"width:%.1f%%\" title=\"skua %s\"></div>", 100 * shortest / ours,
        duration(ours).c_str());
  for (const PeerTime& p : peers)
    h.raw("<div class=\"bar p%d\" style=\"width:%.1f%%\" title=\"%s %s\"></div>", peer_colour(p.name),
          100 * shortest / p.ns, p.name.c_str(), duration(p.ns).c_str());
  h.raw("</td>");
}

inline void tile(Html& h, const std::string& value, const std::string& what) {
  h.raw("<div class=tile><b>%s</b><span>%s</span></div>", value.c_str(), what.c_str());
}

struct Mean {
  double logs = 0, regrets = 0;
  size_t cases = 0, regret_cases = 0, wins = 0;
  double ratio() const { return cases ? exp(logs / double(cases)) : 0; }
  double regret() const { return regret_cases ? exp(regrets / double(regret_cases)) - 1 : 0; }
  void add(const Result& r) {
    if (r.regret >= 0) regrets += log(1 + r.regret), ++regret_cases;
    if (const PeerTime* p = r.best_peer()) logs += log(p->ns / r.ns), ++cases, wins += p->ns > r.ns;
  }
};

}  // namespace bench
