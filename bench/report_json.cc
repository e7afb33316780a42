// JSON, out and in: one object per case.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <skua/skua.h>
#include "session.h"

namespace bench {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += char(c);
    else if (c < 32) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else out += char(c);
  }
  return out + "\"";
}
std::string number(double v, int digits = 6) {
  if (!std::isfinite(v)) return "null";
  char text[32];
  snprintf(text, sizeof text, "%.*g", digits, v);
  return text;
}
std::string or_null(double v) { return v < 0 ? "null" : number(v, 4); }
std::string text_or_null(const std::string& s) { return s.empty() ? "null" : quoted(s); }

std::string peers(const std::vector<PeerTime>& list) {
  std::string out = "{";
  for (const PeerTime& p : list) out += (out.size() > 1 ? ", " : "") + quoted(p.name) + ": " + number(p.ns);
  return out + "}";
}

// Shares of a layer's time; null: not measured.
std::string loss(const Loss& l) {
  std::string out = ", \"loss\": {\"samples\": " + std::to_string(l.samples);
  const std::pair<const char*, double> parts[] = {
      {"compute", l.compute},     {"bandwidth", l.bandwidth}, {"edge", l.edge},    {"pack", l.copy},
      {"transform", l.transform}, {"driver", l.driver},       {"kernel", l.kernel}};
  for (const auto& p : parts) out += ", \"" + std::string(p.first) + "\": " + or_null(p.second);
  return out + "}";
}

std::string start_up(const StartUp& t) {
  return "{\"context_ns\": " + number(t.context_ns, 4) + ", \"weights_ns\": " + number(t.create_ns, 4) +
         ", \"plans_ns\": " + number(t.plan_ns, 4) + ", \"first_run_ns\": " + number(t.first_ns, 4) + "}";
}

// Just enough of a reader for what write_json() writes.
struct Value {
  enum { null, boolean, num, str, list, object } kind = null;
  double number = 0;
  std::string text;
  std::vector<Value> items;
  std::vector<std::string> keys;  // of an object: keys[i] names items[i]
  const Value* get(const char* key) const {
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == key) return &items[i];
    return nullptr;
  }
  std::string string(const char* key) const {
    const Value* v = get(key);
    return v && v->kind == str ? v->text : "";
  }
  double value(const char* key, double otherwise) const {
    const Value* v = get(key);
    return v && v->kind == num ? v->number : otherwise;
  }
};

struct Reader {
  const char* p;
  void space() { while (isspace(static_cast<unsigned char>(*p))) ++p; }
  bool take(char c) {
    space();
    if (*p != c) return false;
    ++p;
    return true;
  }
  bool string(std::string& out) {
    if (!take('"')) return false;
    for (out.clear(); *p && *p != '"'; ++p) {
      if (*p == '\\' && p[1] == 'u' && strlen(p) > 5) out += '?', p += 5;
      else if (*p == '\\' && p[1]) out += *++p;
      else out += *p;
    }
    return *p++ == '"';
  }
  bool value(Value& v) {
    space();
    if (*p == '{') {
      v.kind = Value::object;
      ++p;
      if (take('}')) return true;
      do {
        if (!string(v.keys.emplace_back()) || !take(':') || !value(v.items.emplace_back())) return false;
      } while (take(','));
      return take('}');
    }
    if (*p == '[') {
      v.kind = Value::list;
      ++p;
      if (take(']')) return true;
      do {
        if (!value(v.items.emplace_back())) return false;
      } while (take(','));
      return take(']');
    }
    if (*p == '"') {
      v.kind = Value::str;
      return string(v.text);
    }
    for (const char* word : {"null", "true", "false"})
      if (!strncmp(p, word, strlen(word))) {
        v.kind = word[0] == 'n' ? Value::null : Value::boolean;
        p += strlen(word);
        return true;
      }
    char* end;
    v.number = strtod(p, &end);
    if (end == p) return false;
    v.kind = Value::num;
    p = end;
    return true;
  }
};

}  // namespace

bool write_json(const Session& s, const std::string& path) {
  FILE* f = fopen(path.c_str(), "w");
  if (!f) return false;
  const Machine& m = s.machine;
  fprintf(f,
          "{\n\"skua\": %s,\n\"machine\": {\"cpu\": %s, \"features\": %s, \"isa\": %s, \"cores\": %zu, \"mhz\": %s, "
          "\"load\": %s, \"governor\": %s, \"pinned_to\": %s, \"cache_bytes\": [%zu, %zu, %zu],\n",
          quoted(skua_version_string()).c_str(), quoted(m.cpu).c_str(), quoted(m.features).c_str(),
          quoted(m.isa).c_str(), m.cores, m.mhz > 0 ? number(m.mhz).c_str() : "null", number(m.load, 3).c_str(),
          text_or_null(m.governor).c_str(), m.pinned < 0 ? "null" : std::to_string(m.pinned).c_str(), m.cache[0],
          m.cache[1], m.cache[2]);
  fprintf(f, "  \"peak_gflops\": {");
  for (skua_dtype type : types) {
    if (type != SKUA_DTYPE_F32) fprintf(f, "},\n  \"peak_gflops_%s\": {", skua_dtype_name(type));
    const char* comma = "";
    for (const auto& p : m.peaks)
      if (p.type == type)
        fprintf(f, "%s%s: %s", comma, quoted(p.isa).c_str(), number(p.gflops, 5).c_str()), comma = ", ";
  }
  fprintf(f, "},\n  \"bandwidth_gb_s\": {");
  for (const auto& l : m.levels)
    fprintf(f, "%s%s: {\"read\": %s, \"copy\": %s, \"bytes\": %zu}", &l == &m.levels[0] ? "" : ", ",
            quoted(l.name).c_str(), number(l.read, 4).c_str(), number(l.copy, 4).c_str(), l.bytes);
  fprintf(f, "}},\n");
  if (on_device())
    fprintf(f, "\"device\": {\"api\": %s, \"driver\": %s, \"is_software\": %s},\n", quoted(m.isa).c_str(),
            quoted(s.device.driver).c_str(), s.device.is_software ? "true" : "false");
  fprintf(f, "\"peers\": {");
  for (size_t i = 0; i < s.peers.size(); ++i)
    fprintf(f, "%s%s: %s", i ? ", " : "", quoted(s.peers[i]->name()).c_str(), quoted(s.peers[i]->version()).c_str());
  fprintf(f, "},\n\"isa_cap\": %s,\n\"without\": %s,\n\"numerics\": %s,\n\"quick\": %s,\n\"cases\": [\n",
          text_or_null(isa_cap).c_str(), text_or_null(without_amx ? "amx" : "").c_str(),
          quoted(numerics_name(bench_numerics)).c_str(), s.options.quick ? "true" : "false");
  for (size_t i = 0; i < s.results.size(); ++i) {
    const Result& r = s.results[i];
    const bool timed = r.error.empty();
    fprintf(f,
            "{\"suite\": %s, \"name\": %s, \"op\": %s, \"type\": %s, \"threads\": %d, \"algorithm\": %s, \"kernel\": "
            "%s, \"ns\": %s, \"noise\": %s, \"alone\": %s, \"line_ns\": %s, \"gflops\": %s, \"gb_s\": %s, ",
            quoted(r.suite).c_str(), quoted(r.name).c_str(), quoted(r.op).c_str(),
            quoted(skua_dtype_name(r.type)).c_str(), r.threads, text_or_null(r.algorithm).c_str(),
            text_or_null(r.kernel).c_str(), timed ? number(r.ns).c_str() : "null",
            timed ? number(r.noise, 3).c_str() : "null", timed && r.alone >= 0 ? number(r.alone, 2).c_str() : "null",
            timed && r.line_ns > 0 ? number(r.line_ns, 3).c_str() : "null",
            timed && r.gflops > 0 ? number(r.gflops, 5).c_str() : "null",
            timed && r.bandwidth > 0 ? number(r.bandwidth, 5).c_str() : "null");
    if (const Result* one = s.one_thread(r)) fprintf(f, "\"scaling\": %s, ", number(one->ns / r.ns, 4).c_str());
    if (r.f32.ns > 0) fprintf(f, "\"f32_ns\": %s, ", number(r.f32.ns).c_str());
    if (r.distance >= 0)
      fprintf(f, on_device() ? "\"cpu_distance\": %s, " : "\"f32_distance\": %s, ", number(r.distance, 3).c_str());
    if (r.warm.first_ns > 0)
      fprintf(f,
              "\"programs\": %zu, \"record_ns\": %s, \"record_own_ns\": %s, \"cold_start\": %s, \"warm_start\": %s, ",
              r.warm.programs, number(r.record_ns, 4).c_str(), or_null(r.record_own_ns).c_str(),
              start_up(r.cold).c_str(), start_up(r.warm).c_str());
    fprintf(
        f,
        "\"peak_share\": %s, \"peers\": %s, \"regret\": %s, \"regret_tuned\": %s, \"best_forced\": %s, \"error\": %s",
        or_null(r.peak_share).c_str(), peers(r.peers).c_str(), or_null(r.regret).c_str(),
        or_null(r.regret_tuned).c_str(), text_or_null(r.best_forced).c_str(), text_or_null(r.error).c_str());
    if (!r.steps.empty()) {
      fprintf(f, ", \"steps\": [");
      for (size_t k = 0; k < r.steps.size(); ++k) {
        const StepTime& t = r.steps[k];
        fprintf(
            f, "%s\n  {\"name\": %s, \"algorithm\": %s, \"kernel\": %s, \"ns\": %s, \"gflops\": %s, %s\"peers\": %s%s}",
            k ? "," : "", quoted(t.name).c_str(), text_or_null(t.algorithm).c_str(), text_or_null(t.kernel).c_str(),
            number(t.ns).c_str(), t.gflops > 0 ? number(t.gflops, 5).c_str() : "null",
            t.f32_ns > 0 ? ("\"f32_ns\": " + number(t.f32_ns) + ", ").c_str() : "", peers(t.peers).c_str(),
            (r.worst_step >= 0 ? ", \"longer\": " + number(t.longer, 3) + ", \"larger\": " + text_or_null(t.larger)
             : on_device()     ? ", \"peak_share\": " + or_null(t.peak_share)
             : r.threads == 1  ? loss(t.loss)
                               : "")
                .c_str());
      }
      fprintf(f, "]");
    }
    fprintf(f, "}%s\n", i + 1 < s.results.size() ? "," : "");
  }
  fprintf(f, "]}\n");
  return fclose(f) == 0;
}

bool load_results(const std::string& path, std::vector<Result>* results) {
  std::ifstream file(path);
  if (!file) {
    fprintf(stderr, "skua-bench: %s: %s\n", path.c_str(), strerror(errno));
    return false;
  }
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  Reader reader{text.c_str()};
  Value root;
  const Value* cases = reader.value(root) ? root.get("cases") : nullptr;
  if (!cases || cases->kind != Value::list) {
    fprintf(stderr, "skua-bench: %s is not a result file of skua-bench\n", path.c_str());
    return false;
  }
  const auto conditions = [](const std::string& cap, const std::string& without, const std::string& numerics) {
    return "numerics " + (numerics.empty() ? "default" : numerics) + (cap.empty() ? "" : ", --isa " + cap) +
           (without.empty() ? "" : ", --without-" + without);
  };
  const std::string before = conditions(root.string("isa_cap"), root.string("without"), root.string("numerics")),
                    now = conditions(isa_cap, without_amx ? "amx" : "", numerics_name(bench_numerics));
  if (before != now)
    fprintf(stderr, "skua-bench: %s is of a run with %s, this one has %s: the comparison is of both and of the code\n",
            path.c_str(), before.c_str(), now.c_str());
  for (const Value& v : cases->items) {
    Result r;
    r.suite = v.string("suite");
    r.name = v.string("name");
    r.kernel = v.string("kernel");
    r.algorithm = v.string("algorithm");
    r.error = v.string("error");
    r.ns = v.value("ns", 0);
    r.noise = v.value("noise", 0);
    r.threads = int(v.value("threads", 1));
    results->push_back(r);
  }
  return true;
}

void print_comparison(const Session& s, const std::vector<Result>& earlier) {
  std::map<std::pair<std::string, int>, const Result*> before;
  for (const Result& r : earlier) before[{r.name, r.threads}] = &r;
  size_t faster = 0, slower = 0, same = 0, unknown = 0;
  double logs = 0;
  size_t counted = 0;
  printf("\ncompared with %s (before -> now; what is within the noise is not listed)\n", s.options.compare.c_str());
  for (const Result& r : s.results) {
    const auto it = before.find({r.name, r.threads});
    if (it == before.end() || !r.error.empty() || !it->second->error.empty() || !(it->second->ns > 0) || !(r.ns > 0)) {
      ++unknown;
      continue;
    }
    const Result& old = *it->second;
    const double ratio = old.ns / r.ns, noise = std::max(0.02, 2 * (r.noise + old.noise));
    logs += log(ratio);
    ++counted;
    if (fabs(ratio - 1) <= noise) {
      ++same;
      continue;
    }
    ratio > 1 ? ++faster : ++slower;
    printf("  %-8s %6.2fx  %10s -> %-10s %s%s\n", ratio > 1 ? "faster" : "SLOWER", ratio, duration(old.ns).c_str(),
           duration(r.ns).c_str(), r.name.c_str(),
           old.kernel == r.kernel && old.algorithm == r.algorithm
               ? ""
               : ("  (was " + old.algorithm + " " + old.kernel + ")").c_str());
  }
  printf("%zu faster, %zu slower, %zu the same, %zu only in one of the two; geometric mean %.3fx\n", faster, slower,
         same, unknown, counted ? exp(logs / double(counted)) : 1.0);
}

}  // namespace bench
