#include "tools/cli/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/text.hpp"

namespace tilewright::cli {
namespace {

using emulator::ProfileCounts;
using emulator::ProfileRow;

constexpr int kMaxKinds = 20;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string label(const ProfileRow& row) {
  if (row.line == 0) return row.name;
  return row.name.empty() ? fmt::format("PTX line {}", row.line) : fmt::format("{}:{}", file_name(row.name), row.line);
}

std::string table_line(const std::string& name, const ProfileCounts& counts) {
  return fmt::format("{:<28} {:>12} {:>6.1f} {:>10} {:>10} {:>10} {:>10} {:>10}\n", printable(name, 28),
                     counts.instructions, counts.mean_active_lanes(), counts.global_requests, counts.global_sectors,
                     counts.shared_requests, counts.shared_wavefronts, counts.bank_conflicts);
}

std::string heading(const std::string& first) {
  return fmt::format("{:<28} {:>12} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10}\n", first, "instructions", "lanes",
                     "global", "sectors", "shared", "passes", "conflicts");
}

nlohmann::ordered_json counts_json(const ProfileCounts& counts) {
  nlohmann::ordered_json json;
  for (const emulator::ProfileField& field : emulator::profile_fields()) json[field.name] = counts.*field.count;
  return json;
}

}  // namespace

std::string profile_text(const emulator::LaunchProfile& profile) {
  std::string text = heading("line");
  for (const ProfileRow& row : profile.lines) text += table_line(label(row), row.counts);
  text += "\n" + heading("instruction");
  const std::size_t shown = std::min<std::size_t>(profile.kinds.size(), kMaxKinds);
  for (std::size_t i = 0; i < shown; ++i) text += table_line(label(profile.kinds[i]), profile.kinds[i].counts);
  if (shown < profile.kinds.size()) text += fmt::format("and {} more kinds\n", profile.kinds.size() - shown);
  const ProfileCounts& total = profile.total;
  text += table_line("total", total);
  if (total.global_requests != 0) {
    text += fmt::format(
        "global memory: {} bytes in {} sectors of 32 bytes, {:.0f} % used; {} lines of 128 bytes\n", total.global_bytes,
        total.global_sectors,
        100.0 * static_cast<double>(total.global_bytes) / (32.0 * static_cast<double>(total.global_sectors)),
        total.global_lines);
  }
  if (total.async_copies != 0) {
    text +=
        fmt::format("cp.async: {} copies of threads; their warps executed {:.1f} instructions before the wait ended\n",
                    total.async_copies, total.mean_async_instructions());
  }
  if (total.bulk_loads != 0) {
    text += fmt::format("bulk copies to shared memory: {} of {} bytes; multicast wrote {} more bytes\n",
                        total.bulk_loads, total.bulk_load_bytes, total.multicast_bytes);
  }
  if (total.bulk_stores != 0) {
    text += fmt::format("bulk copies to global memory: {} of {} bytes\n", total.bulk_stores, total.bulk_store_bytes);
  }
  if (total.mbarrier_waits != 0) {
    text += fmt::format("mbarriers: {} waits of warps; a warp waited or asked again {} times\n", total.mbarrier_waits,
                        total.mbarrier_retries);
  }
  if (total.matrix_flops != 0) text += fmt::format("matrix products: {} operations\n", total.matrix_flops);
  return text;
}

nlohmann::ordered_json profile_json(const emulator::LaunchProfile& profile) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array(), lines = nlohmann::ordered_json::array();
  for (const ProfileRow& row : profile.kinds) {
    nlohmann::ordered_json json{{"instruction", row.name}};
    json.update(counts_json(row.counts));
    kinds.push_back(json);
  }
  for (const ProfileRow& row : profile.lines) {
    nlohmann::ordered_json json{{"file", row.name}, {"line", row.line}};
    json.update(counts_json(row.counts));
    lines.push_back(json);
  }
  return {{"total", counts_json(profile.total)}, {"instructions", kinds}, {"lines", lines}};
}

}  // namespace tilewright::cli
