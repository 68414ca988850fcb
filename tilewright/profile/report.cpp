#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/draw.hpp"
#include "tilewright/layout/parse.hpp"
#include "tilewright/profile/check_profile.hpp"
#include "tilewright/profile/formats.hpp"

namespace tilewright::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1c2733; --dim: #5b6a78; --line: #d5dce3; --paper: #fff; --mark: #1f6feb;
  --warn: #c2410c; --band: #f4f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf0; --dim: #9aa8b5; --line: #36424e; --paper: #14191f;
  --mark: #6aa8ff; --warn: #fb923c; --band: #1c242c; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.note { color: var(--dim); max-width: 60rem; }
p.alert { color: var(--warn); font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { cursor: pointer; color: var(--dim); font-weight: 600; } th.text, td.text { text-align: left; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
tr:hover td { background: var(--band); } .wrong, .failed { color: var(--warn); font-weight: 600; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .dim { fill: var(--dim); }
svg .axis { stroke: var(--line); } svg .roof { stroke: var(--dim); stroke-width: 2; fill: none; }
svg .point { fill: var(--mark); } svg .predicted { fill: none; stroke: var(--mark); stroke-width: 1.5; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
.cells { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; padding: .6rem 0; }
.tile { fill: var(--band); stroke: var(--mark); } .bar { fill: var(--mark); }
input { font: inherit; padding: .3rem .5rem; width: 22rem; max-width: 100%; border: 1px solid var(--line);
  background: var(--paper); color: var(--ink); }
)css";

constexpr std::string_view kScript = R"js(
document.querySelectorAll('table.sortable th').forEach((head, column) => {
  const own = [...head.parentNode.children].indexOf(head);
  head.addEventListener('click', () => {
    const body = head.closest('table').tBodies[0], ascending = head.dataset.order !== 'up';
    head.dataset.order = ascending ? 'up' : 'down';
    const value = row => row.cells[own].dataset.value ?? row.cells[own].textContent;
    const compare = (x, y) => {
      const a = parseFloat(x), b = parseFloat(y);
      return isNaN(a) || isNaN(b) ? (isNaN(a) ? 1 : 0) - (isNaN(b) ? 1 : 0) || x.localeCompare(y) : a - b;
    };
    [...body.rows].sort((x, y) => (ascending ? 1 : -1) * compare(value(x), value(y))).forEach(r => body.append(r));
  });
});
const filter = document.getElementById('filter');
if (filter) filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll('#all tbody tr'))
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
});
)js";

std::string escaped(std::string_view text) {
  std::string html;
  for (const char each : text) {
    if (each == '&') {
      html += "&amp;";
    } else if (each == '<') {
      html += "&lt;";
    } else if (each == '>') {
      html += "&gt;";
    } else if (each == '"') {
      html += "&quot;";
    } else {
      html += each;
    }
  }
  return html;
}

/// A kernel with its problem, and the numbers that several sections use.
struct Row {
  const Json* problem = nullptr;
  const Json* kernel = nullptr;
  std::size_t place = 0;     // in the ranking of the problem
  std::optional<double> us;  // measured
  std::optional<double> predicted_us;
  std::optional<double> bound_us;

  /// The time that is shown: measured, or else predicted.
  std::optional<double> shown_us() const { return us ? us : predicted_us; }
  /// The share of the device's peak that the kernel reaches.
  std::optional<double> share() const {
    if (!bound_us || !shown_us() || *shown_us() <= 0.0) return std::nullopt;
    return *bound_us / *shown_us();
  }
  double number(const char* field) const { return problem->value(field, 0.0); }
};

std::optional<double> number_of(const Json& object, const char* field) {
  if (!object.is_object() || !object.contains(field) || !object[field].is_number()) return std::nullopt;
  return object[field].get<double>();
}

std::vector<Row> rows_of(const Json& profile) {
  std::vector<Row> rows;
  for (const Json& problem : profile["problems"]) {
    std::size_t place = 0;
    for (const Json& kernel : problem["kernels"]) {
      const Json times = kernel.value("times", Json());
      rows.push_back({.problem = &problem,
                      .kernel = &kernel,
                      .place = place++,
                      .us = number_of(times, "median_us"),
                      .predicted_us = number_of(kernel, "predicted_us"),
                      .bound_us = number_of(problem, "bound_us")});
    }
  }
  return rows;
}

std::string cell(std::optional<double> value, int digits, std::string_view unit = "") {
  if (!value) return "<td data-value=\"\">–</td>";
  return fmt::format("<td data-value=\"{}\">{:.{}f}{}</td>", *value, *value, digits, unit);
}

std::string text_cell(const std::string& text, std::string_view style = "") {
  return fmt::format("<td class=\"text {}\">{}</td>", style, escaped(text));
}

std::string percent_cell(std::optional<double> share) {
  return cell(share ? std::optional(100.0 * *share) : std::nullopt, 1, " %");
}

/// Classes of problems, with the first kernel of each problem.
std::string summary(const std::vector<Row>& rows, bool is_emulated) {
  struct Class {
    int cases = 0, wrong = 0;
    double logs = 0.0, worst = 0.0, worst_regret = 0.0;
    int shares = 0, regrets = 0;
  };
  std::map<std::string, Class> classes;
  std::map<const Json*, double> best;
  for (const Row& row : rows) {
    if (!row.us) continue;
    const auto [found, is_new] = best.try_emplace(row.problem, *row.us);
    if (!is_new) found->second = std::min(found->second, *row.us);
  }
  for (const Row& row : rows) {
    Class& each = classes[row.problem->value("group", "")];
    const std::string disposition = row.kernel->value("disposition", "");
    each.wrong += disposition == "wrong" || disposition == "failed" ? 1 : 0;
    if (row.place != 0) continue;
    ++each.cases;
    if (const std::optional<double> share = row.share()) {
      each.worst = each.shares == 0 ? *share : std::min(each.worst, *share);
      each.logs += std::log(*share);
      ++each.shares;
    }
    if (row.us && best.contains(row.problem)) {
      each.worst_regret = std::max(each.worst_regret, *row.us / best[row.problem]);
      ++each.regrets;
    }
  }
  std::string html = fmt::format(
      "<h2>By class</h2><p class=\"note\">The share of the peak is the time that the device needs at least, for its "
      "arithmetic or for reading and writing every operand once, divided by the {} time of the kernel that is ranked "
      "first. The regret is the time of that kernel divided by the best one that was measured.</p>"
      "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th class=\"text\">class</th><th>problems</th>"
      "<th>share of peak, geometric mean</th><th>worst</th><th>largest regret</th><th>wrong or failed</th></tr></thead>"
      "<tbody>",
      is_emulated ? "predicted" : "measured");
  for (const auto& [name, each] : classes) {
    html += "<tr>" + text_cell(name) + cell(each.cases, 0);
    html += percent_cell(each.shares > 0 ? std::optional(std::exp(each.logs / each.shares)) : std::nullopt);
    html += percent_cell(each.shares > 0 ? std::optional(each.worst) : std::nullopt);
    html += cell(each.regrets > 0 ? std::optional(each.worst_regret) : std::nullopt, 3);
    html += fmt::format("<td class=\"{}\">{}</td></tr>", each.wrong > 0 ? "wrong" : "", each.wrong);
  }
  return html + "</tbody></table></div>";
}

/// Arithmetic intensity against speed, with both axes logarithmic.
std::string roofline(const std::vector<Row>& rows, double peak_flops, double peak_bytes, bool is_emulated) {
  if (peak_flops <= 0.0 || peak_bytes <= 0.0) return "";
  constexpr double kWidth = 860, kHeight = 420, kLeft = 70, kBottom = 46, kTop = 14, kRight = 20;
  double least_x = peak_flops / peak_bytes / 10, most_x = peak_flops / peak_bytes * 10;
  double least_y = peak_flops / 1e4, most_y = peak_flops * 2;
  struct Point {
    double x, y;
    const Row* row;
  };
  std::vector<Point> points;
  for (const Row& row : rows) {
    const double flops = row.number("flops"), bytes = row.number("bytes");
    if (row.place != 0 || !row.shown_us() || flops <= 0.0 || bytes <= 0.0) continue;
    points.push_back({flops / bytes, flops / *row.shown_us() * 1e6, &row});
    least_x = std::min(least_x, points.back().x / 2);
    most_x = std::max(most_x, points.back().x * 2);
    least_y = std::min(least_y, points.back().y / 2);
  }
  const auto x_of = [&](double x) {
    return kLeft + (kWidth - kLeft - kRight) * std::log(x / least_x) / std::log(most_x / least_x);
  };
  const auto y_of = [&](double y) {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * std::log(y / least_y) / std::log(most_y / least_y);
  };
  std::string svg = fmt::format(
      "<svg id=\"roofline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Roofline\" style=\"width:100%\">", kWidth,
      kHeight);
  const auto first_decade = [](double least) { return static_cast<int>(std::ceil(std::log10(least))); };
  for (int decade = first_decade(least_x); std::pow(10.0, decade) <= most_x; ++decade) {
    const double x = std::pow(10.0, decade);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"dim\" x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4:g}</text>",
        x_of(x), kTop, kHeight - kBottom, kHeight - kBottom + 16, x);
  }
  for (int decade = first_decade(least_y); std::pow(10.0, decade) <= most_y; ++decade) {
    const double y = std::pow(10.0, decade);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/><text class=\"dim\" x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>",
        y_of(y), kLeft, kWidth - kRight, kLeft - 6, y_of(y) + 4, y / 1e12);
  }
  const double ridge = peak_flops / peak_bytes;
  const double from = std::max(least_x, least_y / peak_bytes);
  svg += fmt::format("<path class=\"roof\" d=\"M{:.1f},{:.1f} L{:.1f},{:.1f} L{:.1f},{:.1f}\"/>", x_of(from),
                     y_of(from * peak_bytes), x_of(ridge), y_of(peak_flops), x_of(most_x), y_of(peak_flops));
  svg += fmt::format("<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} TFLOP/s in f16</text>",
                     kWidth - kRight, y_of(peak_flops) - 6, peak_flops / 1e12);
  svg +=
      fmt::format("<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} GB/s</text>",
                  x_of(std::sqrt(from * ridge)) - 8, y_of(std::sqrt(from * ridge) * peak_bytes) - 4, peak_bytes / 1e9);
  for (const Point& point : points) {
    svg += fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>{}\n{}\n{:.2f} us{}, {:.2f} TFLOP/s</title>"
        "</circle>",
        point.row->us ? "point" : "predicted", x_of(point.x), y_of(point.y),
        escaped(point.row->problem->value("problem", "")), escaped(point.row->kernel->value("kernel", "")),
        *point.row->shown_us(), point.row->us ? "" : " predicted", point.y / 1e12);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations per byte</text>",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8);
  svg += fmt::format("<text transform=\"translate(16,{}) rotate(-90)\" text-anchor=\"middle\">TFLOP/s</text></svg>",
                     (kHeight - kBottom + kTop) / 2);
  return fmt::format(
             "<h2>Roofline</h2><p class=\"note\">Each circle is the kernel that is ranked first for a problem. {}</p>",
             is_emulated ? "Circles are empty because their times are predicted and not measured."
                         : "Filled circles are measured.") +
         svg;
}

/// The header of a table of kernels; without the columns of measured times if nothing was timed.
std::string head(bool is_emulated) {
  return fmt::format(
      "<thead><tr><th class=\"text\">problem</th><th class=\"text\">kernel</th><th class=\"text\">outcome</th>"
      "<th>predicted us</th>{}<th>of peak</th><th>registers</th><th>spills</th><th>shared KiB</th>"
      "<th>compiled ms</th></tr></thead>",
      is_emulated ? "" : "<th>median us</th><th>5 % us</th><th>95 % us</th><th>TFLOP/s</th><th>GB/s</th>");
}

std::string line(const Row& row, bool is_emulated) {
  const Json times = row.kernel->value("times", Json());
  const std::string disposition = row.kernel->value("disposition", "");
  const std::string reason = row.kernel->value("reason", "");
  const auto kib = number_of(*row.kernel, "smem_bytes");
  std::string measured;
  if (!is_emulated) {
    measured = cell(row.us, 2) + cell(number_of(times, "p05_us"), 2) + cell(number_of(times, "p95_us"), 2) +
               cell(number_of(times, "tflops"), 2) + cell(number_of(times, "gbytes_per_s"), 0);
  }
  return "<tr>" + text_cell(row.problem->value("problem", "")) + text_cell(row.kernel->value("kernel", "")) +
         text_cell(reason.empty() ? disposition : disposition + ": " + reason, disposition) +
         cell(row.predicted_us, 2) + measured + percent_cell(row.share()) +
         cell(number_of(*row.kernel, "registers"), 0) + cell(number_of(*row.kernel, "spill_bytes"), 0) +
         cell(kib ? std::optional(*kib / 1024) : std::nullopt, 1) + cell(number_of(*row.kernel, "compile_ms"), 0) +
         "</tr>";
}

/// The ratios of the peers that were timed, by class of problems. Empty if none was.
std::string ratios_by_class(const Json& profile) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> ratios;  // by class and peer
  for (const Json& problem : profile["problems"]) {
    for (const Json& peer : problem.value("peers", Json::array())) {
      const std::optional<double> ratio = number_of(peer, "ratio");
      if (ratio && *ratio > 0.0) ratios[{problem.value("group", ""), peer.value("peer", "")}].push_back(*ratio);
    }
  }
  if (ratios.empty()) return "";
  std::string html =
      "<div class=\"scroll\"><table id=\"peer_classes\" class=\"sortable\"><thead><tr><th class=\"text\">class</th>"
      "<th class=\"text\">peer</th><th>problems</th><th>ratio, geometric mean</th><th>worst</th></tr></thead><tbody>";
  for (const auto& [key, of_class] : ratios) {
    double logs = 0.0;
    for (const double ratio : of_class) logs += std::log(ratio);
    html += "<tr>" + text_cell(key.first) + text_cell(key.second) + cell(static_cast<double>(of_class.size()), 0) +
            cell(std::exp(logs / static_cast<double>(of_class.size())), 3) +
            cell(*std::ranges::min_element(of_class), 3) + "</tr>";
  }
  return html + "</tbody></table></div>";
}

/// The libraries that were timed beside Tilewright, and those that were not, with the reason.
std::string peers_of(const Json& profile) {
  std::string lines;
  for (const Json& problem : profile["problems"]) {
    for (const Json& peer : problem.value("peers", Json::array())) {
      const std::string reason = peer.value("reason", ""), disposition = peer.value("disposition", "");
      lines += "<tr>" + text_cell(problem.value("problem", "")) + text_cell(peer.value("peer", "")) +
               text_cell(reason.empty() ? disposition : disposition + ": " + reason, disposition) +
               cell(number_of(peer.value("times", Json()), "median_us"), 2) +
               cell(number_of(peer, "own_median_us"), 2) + cell(number_of(peer, "ratio"), 3) + "</tr>";
    }
  }
  if (lines.empty()) return "";
  return "<h2>Peers</h2><p class=\"note\">Libraries that took turns with Tilewright's kernel in the same rounds. "
         "A ratio above 1 means that Tilewright is faster.</p>" +
         ratios_by_class(profile) +
         "<div class=\"scroll\"><table id=\"peers\" class=\"sortable\"><thead>"
         "<tr><th class=\"text\">problem</th><th class=\"text\">peer</th><th class=\"text\">outcome</th><th>its us</th>"
         "<th>Tilewright us</th><th>ratio</th></tr></thead><tbody>" +
         lines + "</tbody></table></div>";
}

std::string worst_ten(const std::vector<Row>& rows, bool is_emulated) {
  std::vector<const Row*> found;
  for (const Row& row : rows) {
    if (row.place == 0 && row.share()) found.push_back(&row);
  }
  std::ranges::sort(found, {}, [](const Row* row) { return *row->share(); });
  if (found.size() > 10) found.resize(10);
  std::string html =
      "<h2>The worst ten</h2><p class=\"note\">The problems whose first kernel is farthest from the "
      "peak.</p><div class=\"scroll\"><table id=\"worst\" class=\"sortable\">";
  html += head(is_emulated);
  html += "<tbody>";
  for (const Row* row : found) html += line(*row, is_emulated);
  return html + "</tbody></table></div>";
}

std::string all(const std::vector<Row>& rows, bool is_emulated) {
  std::string html =
      "<h2>All kernels</h2><p><input id=\"filter\" placeholder=\"filter: f16 sm90_gemm\" aria-label=\"filter\"></p>"
      "<div class=\"scroll\"><table id=\"all\" class=\"sortable\">";
  html += head(is_emulated);
  html += "<tbody>";
  for (const Row& row : rows) html += line(row, is_emulated);
  return html + "</tbody></table></div>";
}

/// D divided into the tiles of CTAs.
std::string tiles_picture(const Row& row) {
  const Json& tile = row.kernel->value("tile", Json::array());
  const double m = row.number("m"), n = row.number("n");
  if (!tile.is_array() || tile.size() != 3 || m <= 0 || n <= 0) return "";
  const double tile_m = tile[0].get<double>(), tile_n = tile[1].get<double>();
  if (tile_m <= 0 || tile_n <= 0) return "";
  constexpr double kMaxPixels = 200;  // of the longer side
  const double scale = kMaxPixels / std::max(std::max(m, n), std::max(tile_m, tile_n));
  const double rows = std::ceil(m / tile_m), columns = std::ceil(n / tile_n);
  constexpr double kMaxTiles = 1024;  // more tiles than this are not told apart
  std::string svg =
      fmt::format("<svg class=\"plan\" width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\" aria-label=\"tiles of D\">",
                  columns * tile_n * scale + 2, rows * tile_m * scale + 2);
  if (rows * columns <= kMaxTiles) {
    for (int i = 0; i < static_cast<int>(rows); ++i) {
      for (int j = 0; j < static_cast<int>(columns); ++j) {
        svg += fmt::format("<rect class=\"tile\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                           1 + j * tile_n * scale, 1 + i * tile_m * scale, tile_n * scale, tile_m * scale);
      }
    }
  } else {
    svg +=
        fmt::format("<rect class=\"tile\" x=\"1\" y=\"1\" width=\"{:.1f}\" height=\"{:.1f}\"/>", n * scale, m * scale);
  }
  const double waste = rows * tile_m * columns * tile_n / (m * n) - 1;
  return fmt::format("<div><b>Tiles of D</b><br>{} x {} tiles of {} x {}, {:.1f} % beyond D<br>{}</svg></div>", rows,
                     columns, tile_m, tile_n, 100 * waste, svg);
}

/// An SVG document as the address of an image, so that its style does not apply to the report, which needs no other
/// file.
std::string image(const std::string& svg, const std::string& meaning) {
  std::string address;
  for (const char c : svg) {
    if (std::string_view("\"#%:<>").find(c) != std::string_view::npos) {
      address += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      address += c;
    }
  }
  return fmt::format("<img class=\"layout\" alt=\"{}\" src=\"data:image/svg+xml,{}\">", escaped(meaning), address);
}

/// The first lines of an operand's tile in shared memory: a cell for each 16 bytes, coloured by bank.
std::string shared_picture(const Json& shared) {
  constexpr std::int64_t kLines = 8;   // of a swizzle atom
  constexpr std::int64_t kCells = 16;  // of a line
  constexpr std::int64_t kCellBits = 128;
  const Result<layout::ComposedLayout> parsed = layout::parse_composed_layout(shared.value("layout", ""));
  const int unit_bits = shared.value("unit_bits", 0);
  if (!parsed || parsed->rank() != 2 || unit_bits <= 0) return "";
  const std::int64_t lines = layout::size(parsed->mode(0)), elements = layout::size(parsed->mode(1));
  const std::int64_t stride = elements > 1 ? std::abs((*parsed)(0, 1) - (*parsed)(0, 0)) : 1;
  const std::int64_t step =
      std::clamp<std::int64_t>(kCellBits / std::max<std::int64_t>(1, unit_bits * stride), 1, elements);
  const layout::ComposedLayout shown =
      layout::composition(*parsed, layout::Tiler{layout::Layout(std::min(lines, kLines), 1),
                                                 layout::Layout(std::min(elements / step, kCells), step)});
  const std::string operand = shared.value("operand", "");
  const std::string mode = shared.value("is_k_major", true) ? "K" : operand == "A" ? "M" : "N";
  const auto drawn = layout::bank_pictures(
      shown, unit_bits, fmt::format("the first {} lines of {}", layout::size(shown.mode(0)), operand));
  if (!drawn) return "";
  std::vector<layout::Picture> pictures = *drawn;
  if (step > 1) pictures.front().notes = {fmt::format("a cell is {} elements: offset and bank of the first", step)};
  return fmt::format("<div><b>{} in shared memory</b>: {} lines along {} of {} elements, {}<br>{}</div>",
                     escaped(operand), lines, mode, elements, escaped(layout::to_string(*parsed)),
                     image(layout::to_svg(pictures), operand + " in shared memory"));
}

/// The layouts of A and B, if the profile has them.
std::string shared_pictures(const Row& row) try {
  std::string html;
  for (const Json& shared : row.kernel->value("shared_layouts", Json::array())) html += shared_picture(shared);
  return html.empty() ? "" : "<div class=\"cells\">" + html + "</div>";
} catch (const InvalidArgument&) {
  return "";  // the file has a layout that does not fit the tile
}

std::string instructions_picture(const Row& row) {
  const Json& counts = row.kernel->value("instructions", Json::object());
  if (counts.empty()) return "";
  int most = 1;
  for (const auto& [kind, count] : counts.items()) most = std::max(most, count.get<int>());
  constexpr int kLine = 18;
  std::string svg = fmt::format("<svg class=\"instructions\" width=\"420\" height=\"{}\" role=\"img\">",
                                kLine * static_cast<int>(counts.size()) + 4);
  int y = 0;
  for (const auto& [kind, count] : counts.items()) {
    const double width = 200.0 * count.get<int>() / most;
    svg += fmt::format(
        "<text x=\"140\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"148\" y=\"{}\" "
        "width=\"{:.1f}\" height=\"12\"/><text x=\"{:.1f}\" y=\"{}\">{}</text>",
        y + 13, escaped(kind), y + 3, width, 154 + width, y + 13, count.get<int>());
    y += kLine;
  }
  return "<div><b>PTX instructions in the text</b>, each counted once<br>" + svg + "</svg></div>";
}

/// The counts of a launch, or of one kind of instruction or line of it, that a column of the tables shows.
struct Count {
  const char* heading;
  const char* field;
};
constexpr std::array kCounts{Count{"instructions", "instructions"},       Count{"global accesses", "global_requests"},
                             Count{"global bytes", "global_bytes"},       Count{"sectors", "global_sectors"},
                             Count{"shared accesses", "shared_requests"}, Count{"passes", "shared_wavefronts"},
                             Count{"bank conflicts", "bank_conflicts"},   Count{"TMA bytes in", "bulk_load_bytes"},
                             Count{"TMA bytes out", "bulk_store_bytes"},  Count{"matrix operations", "matrix_flops"}};

/// A table with a row for each name and its counts.
std::string counts_table(const std::string& heading, const std::vector<std::pair<std::string, Json>>& entries) {
  std::string html = "<div class=\"scroll\"><table class=\"sortable counts\"><thead><tr><th class=\"text\">" +
                     escaped(heading) + "</th>";
  for (const Count& count : kCounts) html += fmt::format("<th>{}</th>", count.heading);
  html += "</tr></thead><tbody>";
  for (const auto& [name, counts] : entries) {
    html += "<tr>" + text_cell(name);
    for (const Count& count : kCounts) {
      const std::optional<double> number = number_of(counts, count.field);
      html += number ? cell(number, 0) : "<td data-value=\"0\"></td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

/// Returns the tables of what the emulator counted: the whole launch, each kind of instruction, each line of the
/// source.
std::string counts_of(const Row& row) {
  const Json counts = row.kernel->value("counts", Json());
  if (!counts.is_object()) return "";
  const Json total = counts.value("total", Json::object());
  constexpr std::size_t kMaxKinds = 12, kMaxLines = 40;
  std::vector<std::pair<std::string, Json>> kinds{{"the launch", total}}, lines;
  for (const Json& kind : counts.value("instructions", Json::array())) {
    const auto has = [&](const Count& count) { return number_of(kind, count.field).value_or(0.0) > 0.0; };
    // Few instructions may move most of the data.
    const bool works = std::any_of(kCounts.begin() + 1, kCounts.end(), has);
    if (works || kinds.size() <= kMaxKinds) kinds.emplace_back(kind.value("instruction", ""), kind);
  }
  for (const Json& each : counts.value("lines", Json::array())) {
    const std::string file = each.value("file", "");
    lines.emplace_back(
        fmt::format("{}:{}", file.empty() ? "PTX" : file.substr(file.rfind('/') + 1), each.value("line", 0)), each);
  }
  std::ranges::stable_sort(lines, std::greater<>(),
                           [](const auto& each) { return each.second.value("instructions", 0.0); });
  const std::size_t all_lines = lines.size();
  if (lines.size() > kMaxLines) lines.resize(kMaxLines);
  std::string facts;
  const double bytes = total.value("global_bytes", 0.0), sectors = total.value("global_sectors", 0.0);
  if (sectors > 0.0)
    facts += fmt::format("{:.0f} % of the bytes of global sectors were used. ", 100.0 * bytes / (32.0 * sectors));
  if (const auto share = number_of(*row.kernel, "occupancy")) {
    facts += fmt::format("An SM holds {} CTAs at once, {:.0f} % of its warps. ", row.kernel->value("ctas_per_sm", 0),
                         100.0 * *share);
  }
  return fmt::format("<p class=\"note\"><b>Counted on the emulator</b>, in the launch that was verified. {}</p>{}",
                     facts, counts_table("instruction", kinds)) +
         fmt::format("<p class=\"note\">{} of {} lines, those with the most instructions.</p>{}", lines.size(),
                     all_lines, counts_table("line", lines));
}

std::string plans(const std::vector<Row>& rows) {
  std::string html = "<h2>Plans</h2>";
  for (const Row& row : rows) {
    if (row.place != 0) continue;
    const auto l2 = number_of(*row.kernel, "l2_bytes");
    const auto three = [&](const char* field) {
      std::string text;
      for (const Json& each : row.kernel->value(field, Json::array()))
        text += fmt::format("{}{}", text.empty() ? "" : " x ", each.get<std::int64_t>());
      return text;
    };
    std::string facts =
        fmt::format("<div><table><tbody><tr>{}{}</tr><tr>{}{}</tr><tr>{}{}</tr><tr>{}{}</tr>", text_cell("design"),
                    text_cell(row.kernel->value("design", "")), text_cell("grid"), text_cell(three("grid")),
                    text_cell("block"), text_cell(three("block")), text_cell("bytes of all operands"),
                    text_cell(fmt::format("{:.0f}", row.number("bytes"))));
    if (l2) facts += "<tr>" + text_cell("bytes read through L2") + text_cell(fmt::format("{:.0f}", *l2)) + "</tr>";
    facts += "</tbody></table></div>";
    html += fmt::format("<details{}><summary>{} — {}</summary><div class=\"cells\">{}{}{}</div>{}{}</details>",
                        html == "<h2>Plans</h2>" ? " open" : "", escaped(row.problem->value("problem", "")),
                        escaped(row.kernel->value("kernel", "")), facts, tiles_picture(row), instructions_picture(row),
                        shared_pictures(row), counts_of(row));
  }
  return html;
}

}  // namespace

std::string to_html(std::string_view text) try {
  check_profile(text);
  const Json profile = Json::parse(text);
  const std::vector<Row> rows = rows_of(profile);
  const bool is_emulated = profile.value("is_emulated", false);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tilewright profile, {0}</title>"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{1}</style></head><body>"
      "<h1>Tilewright profile</h1><p>{0}, target {2}: {3} problems, {4} kernels</p>",
      escaped(profile["device"].get<std::string>()), kStyle, escaped(profile["target"].get<std::string>()),
      profile["problems"].size(), rows.size());
  if (is_emulated) {
    html +=
        "<p class=\"alert\">No time in this report is measured: the device is an emulator. It counts, and verifies "
        "results where the outcome says so; times are predictions of the cost model for a GPU of the target.</p>";
  }
  if (!profile.value("is_complete", true))
    html += "<p class=\"alert\">The profile was interrupted, so that some problems are missing.</p>";
  html += summary(rows, is_emulated);
  html += roofline(rows, profile.value("peak_flops", 0.0), profile.value("peak_bytes_per_s", 0.0), is_emulated);
  html += peers_of(profile) + worst_ten(rows, is_emulated) + all(rows, is_emulated) + plans(rows);
  return html + fmt::format("<script>{}</script></body></html>\n", kScript);
} catch (const Json::exception& error) {
  throw InvalidArgument(fmt::format("this is no profile: {}", error.what()));
}

}  // namespace tilewright::profile
