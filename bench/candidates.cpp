#include "candidates.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "random_class.hpp"
#include "tilewright/base/error.hpp"
#include "verification.hpp"

namespace tilewright::bench {
namespace {

using Json = nlohmann::ordered_json;

Json about(const Problem& problem, const std::string& gpu) {
  return {{"id", problem.id.empty() ? title(problem) : problem.id},
          {"class", random_class(problem).name},
          {"problem", problem.line},
          {"gpu", gpu}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void read(const Json& json, const char* key, int& value) {
  if (json.contains(key)) value = json.at(key).get<int>();
}

void read(const Json& json, const char* key, bool& value) {
  if (json.contains(key)) value = json.at(key).get<bool>();
}

void read(const Json& json, const char* key, plan::TileShape& shape) {
  if (!json.contains(key)) return;
  const auto extents = json.at(key).get<std::array<int, 3>>();
  shape = {extents[0], extents[1], extents[2]};
}

/// A value of the key that `parse` accepts; unchanged if the key is missing.
template <class T, class Parse>
void read(const Json& json, const char* key, T& value, const Parse& parse) {
  if (!json.contains(key)) return;
  const auto text = json.at(key).get<std::string>();
  const auto parsed = parse(text);
  if (!parsed) throw InvalidArgument(fmt::format("{} must not be \"{}\"", key, text));
  value = *parsed;
}

std::optional<plan::OpClass> parse_op_class(std::string_view text) {
  for (const plan::OpClass one : {plan::OpClass::simt, plan::OpClass::tensor_op}) {
    if (plan::name(one) == text) return one;
  }
  return {};
}

plan::FlatDesign design_of(const Json& json) {
  plan::FlatDesign design;
  read(json, "target", design.target, [](const std::string& text) { return parse_target(text); });
  read(json, "op_class", design.op_class, parse_op_class);
  read(json, "instruction", design.instruction);
  read(json, "threadblock_shape", design.tile);
  if (json.contains("warp_count")) {
    plan::TileShape warps;
    read(json, "warp_count", warps);
    design.warps_m = warps.m;
    design.warps_n = warps.n;
    design.warps_k = warps.k;
  }
  read(json, "cluster_shape", design.cluster);
  read(json, "schedule", design.schedule, plan::parse_schedule);
  read(json, "swaps_operands", design.swaps_operands);
  read(json, "stages", design.stages);
  if (json.contains("raster")) {
    read(json.at("raster"), "width", design.raster.width);
    read(json.at("raster"), "along", design.raster.along_n, [](const std::string& text) -> std::optional<bool> {
      if (text != "m" && text != "n") return {};
      return text == "n";
    });
  }
  read(json, "split_k", design.split_k);
  read(json, "repacks_operands", design.repacks_operands);
  if (json.contains("splits_in_turn")) read(json, "splits_in_turn", design.splits_in_turn);
  if (json.contains("repacks_only_b")) read(json, "repacks_only_b", design.repacks_only_b);
  if (json.contains("mix")) {
    plan::AtomMix mix{};
    read(json, "mix", mix, plan::parse_mix);
    design.mix = mix;
  }
  return design;
}

/// Verifies the candidates, and returns the contenders that may be timed.
std::vector<Contender> verified(const std::shared_ptr<runtime::Device>& device, const Problem& problem,
                                const OperandSets& sets, std::span<const Contender> contenders,
                                std::vector<Candidate>& candidates) {
  Verification verification(device, problem, sets);
  std::vector<Contender> right;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    candidates[i].is_right = verification.judge(contenders[i]).right;
    if (*candidates[i].is_right) right.push_back(contenders[i]);
  }
  return right;
}

std::vector<std::string> lines_of(engine::Engine& engine, const Problem& problem, RandomBlocks& random,
                                  const CandidateOptions& options, const MakeTimer& make_timer) {
  const std::shared_ptr<runtime::Device>& device = engine.device();
  const std::string gpu = device->properties().name;
  const OperandSets sets(device, problem, random, options.seed, options.most_sets);
  const Result<OurKernels> ours = tilewright_contenders(engine, problem, sets, options.choice);
  if (!ours) return {failure_line(problem, gpu, "", ours.reason())};
  std::vector<std::string> lines;
  for (const FailedKernel& failed : ours->failed)
    lines.push_back(failure_line(problem, gpu, failed.name, failed.reason));
  std::vector<Candidate> candidates;
  for (const engine::RankedKernel& ranked : ours->kernels)
    candidates.push_back({.ranked = ranked, .rank = static_cast<int>(candidates.size()) + 1});
  const std::vector<Contender> timed = sets.bytes() <= options.most_verified_bytes
                                           ? verified(device, problem, sets, ours->contenders, candidates)
                                           : ours->contenders;
  std::vector<Timing> timings;
  if (!timed.empty()) timings = survey(make_timer(timed, sets.count()), timed.size(), options.survey);
  auto timing = timings.begin();
  for (Candidate& candidate : candidates) {
    if (candidate.is_right.value_or(true)) candidate.timing = *timing++;
    lines.push_back(candidate_line(problem, gpu, candidate));
  }
  return lines;
}

}  // namespace

std::vector<std::string> survey_candidates(engine::Engine& engine, const Problem& problem, RandomBlocks& random,
                                           const CandidateOptions& options, const MakeTimer& make_timer) {
  try {
    return lines_of(engine, problem, random, options, make_timer);
  } catch (const Error& error) {
    return {failure_line(problem, engine.device()->properties().name, "", error.what())};
  }
}

std::string candidate_line(const Problem& problem, const std::string& gpu, const Candidate& candidate) {
  const registry::Kernel& kernel = *candidate.ranked.kernel;
  const Json metadata = Json::parse(registry::to_json(kernel.metadata()));
  const double estimate_us = candidate.ranked.estimate_us;
  Json json = about(problem, gpu);
  json.update({{"m", problem.m},
               {"n", problem.n},
               {"k", problem.k},
               {"batch", problem.batch},
               {"kernel", kernel.name()},
               {"family", metadata.at("family")},
               {"rank", candidate.rank},
               {"estimate_us", std::isfinite(estimate_us) ? Json(estimate_us) : Json(nullptr)},
               {"right", or_null(candidate.is_right)},
               {"median_us", candidate.timing ? Json(candidate.timing->median_us) : Json(nullptr)},
               {"samples", candidate.timing ? Json(candidate.timing->samples) : Json(nullptr)},
               {"operands", metadata.at("operands")},
               {"design", metadata.at("design")}});
  return json.dump();
}

std::string failure_line(const Problem& problem, const std::string& gpu, const std::string& kernel,
                         const std::string& failure) {
  Json json = about(problem, gpu);
  json.update({{"kernel", kernel}, {"failure", failure}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<plan::FlatDesign> read_designs(std::istream& file, const std::string& file_name) {
  std::vector<plan::FlatDesign> designs;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    try {
      designs.push_back(design_of(Json::parse(line)));
    } catch (const Json::exception& error) {
      throw InvalidArgument(fmt::format("{}:{}: {}", file_name, number, error.what()));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}:{}: {}", file_name, number, error.what()));
    }
  }
  return designs;
}

}  // namespace tilewright::bench
