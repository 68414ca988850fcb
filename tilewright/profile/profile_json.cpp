#include <nlohmann/json.hpp>

#include "tilewright/base/text.hpp"
#include "tilewright/profile/launch_counts.hpp"
#include "tilewright/profile/profile.hpp"

namespace tilewright::profile {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const KernelProfile& kernel, const ProblemProfile& problem) {
  Json json{{"kernel", kernel.kernel},
            {"provider", kernel.provider},
            {"design", kernel.design},
            {"disposition", name(kernel.disposition)},
            {"reason", kernel.reason},
            {"predicted_us", optional(kernel.predicted_us)},
            {"times", nullptr},
            {"registers", optional(kernel.registers)},
            {"spill_bytes", optional(kernel.spill_bytes)},
            {"smem_bytes", kernel.smem_bytes},
            {"workspace_bytes", kernel.workspace_bytes},
            {"l2_bytes", optional(kernel.l2_bytes)},
            {"grid", kernel.grid},
            {"block", kernel.block},
            {"tile", kernel.tile},
            {"compile_ms", kernel.compile_ms},
            {"instructions", Json::object()},
            {"ctas_per_sm", optional(kernel.ctas_per_sm)},
            {"occupancy", optional(kernel.occupancy)},
            {"counts", kernel.counts ? counts_json(*kernel.counts) : Json()}};
  if (kernel.times) {
    json["times"] = {{"samples", kernel.times->samples},
                     {"median_us", kernel.times->median_us},
                     {"p05_us", kernel.times->p05_us},
                     {"p95_us", kernel.times->p95_us},
                     {"tflops", problem.flops / kernel.times->median_us * 1e-6},
                     {"gbytes_per_s", problem.bytes / kernel.times->median_us * 1e-3}};
  }
  for (const auto& [kind, count] : kernel.instructions) json["instructions"][kind] = count;
  for (const plan::SharedLayout& shared : kernel.shared_layouts) {
    json["shared_layouts"].push_back({{"operand", shared.operand},
                                      {"layout", layout::to_string(shared.layout)},
                                      {"is_k_major", shared.is_k_major},
                                      {"unit_bits", shared.unit_bits}});
  }
  return json;
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json json{{"schema", 1},
            {"device", profile.device},
            {"target", profile.target},
            {"is_emulated", profile.is_emulated},
            {"is_complete", profile.is_complete},
            {"peak_flops", profile.peak_flops},
            {"peak_bytes_per_s", profile.peak_bytes_per_s},
            {"problems", Json::array()}};
  for (const ProblemProfile& problem : profile.problems) {
    Json kernels = Json::array();
    for (const KernelProfile& kernel : problem.kernels) kernels.push_back(to_json(kernel, problem));
    json["problems"].push_back({{"problem", problem.problem},
                                {"operation", problem.operation},
                                {"group", problem.group},
                                {"m", problem.m},
                                {"n", problem.n},
                                {"k", problem.k},
                                {"batch", problem.batch},
                                {"flops", problem.flops},
                                {"bytes", problem.bytes},
                                {"bound_us", optional(problem.bound_us)},
                                {"refused", problem.refused},
                                {"kernels", kernels}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tilewright::profile
