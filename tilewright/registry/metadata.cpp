#include "tilewright/registry/metadata.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "tilewright/base/hash.hpp"

namespace tilewright::registry {
namespace {

// "f16r8": element, r or c for row- or column-major (ri or ci if interleaved), alignment in elements. "f16r8p" is a
// pointer array, "f16r8i" an im2col matrix, "f16r8id" one whose coordinates are divided, "f16r8idm" one with many
// classes of rows, and "s8r16ib" one with blocks of channels; "f16r8i32" has tap rows of 32 elements, shorter than the
// longest; "f16r8iz" has zeros behind the channels of each tap; in "f16r8is3" three taps share pixels. "f16r8f2" is a
// folded operand of up to two coordinates a mode.
std::string short_name(const op::TensorSignature& tensor) {
  constexpr std::array<std::string_view, 4> kLetters{"r", "c", "ri", "ci"};
  constexpr std::array<std::string_view, 4> kAccess{"", "i", "id", "ib"};
  const bool has_long_tap_rows = tensor.tap_row * bytes(tensor.element) >= op::kMaxTapRow;
  return fmt::format("{}{}{}{}{}{}{}{}{}{}", name(tensor.element), kLetters[static_cast<std::size_t>(tensor.layout)],
                     tensor.alignment, tensor.is_pointer_array ? "p" : "",
                     kAccess[static_cast<std::size_t>(tensor.im2col)], tensor.has_many_classes ? "m" : "",
                     tensor.has_padded_taps ? "z" : "",
                     tensor.tap_row == 0 || has_long_tap_rows ? "" : fmt::to_string(tensor.tap_row),
                     tensor.shared_taps == 0 ? "" : fmt::format("s{}", tensor.shared_taps),
                     tensor.folded_modes == 0 ? "" : fmt::format("f{}", tensor.folded_modes));
}

using Json = nlohmann::ordered_json;

Json to_value(const op::TensorSignature& tensor) {
  Json json{{"element", name(tensor.element)}, {"layout", op::name(tensor.layout)}, {"alignment", tensor.alignment}};
  if (tensor.is_pointer_array) json["is_pointer_array"] = true;
  if (tensor.im2col != op::Im2colAccess::none)
    json["im2col"] = op::name(tensor.im2col), json["tap_row"] = tensor.tap_row;
  if (tensor.has_padded_taps) json["has_padded_taps"] = true;
  if (tensor.shared_taps != 0) json["shared_taps"] = tensor.shared_taps, json["shared_step"] = tensor.shared_step;
  if (tensor.has_many_classes) json["has_many_classes"] = true;
  if (tensor.folded_modes != 0) json["folded_modes"] = tensor.folded_modes;
  return json;
}
Json to_value(const plan::TileShape& shape) { return {shape.m, shape.n, shape.k}; }
Json to_value(bool value) { return value; }
Json to_value(DType type) { return name(type); }
Json to_value(op::MathOperation math) { return op::name(math); }
Json to_value(op::GroupedMode mode) { return op::name(mode); }
Json to_value(const op::Epilogue& epilogue) {
  return {{"name", epilogue.name}, {"compute", name(epilogue.compute)}, {"graph", op::signature(epilogue)}};
}
Json to_value(const std::vector<op::EpilogueTensorSignature>& tensors) { return op::to_string(tensors); }

// `Signature` is a GemmSignature or a ReduceSplitKSignature.
template <class Signature>
Json operands_of(const Signature& signature) {
  Json json;
  op::for_each_field(signature,
                     [&](std::string_view field, const auto& value) { json[std::string(field)] = to_value(value); });
  if (!signature.has_c) json["c"] = nullptr;
  return json;
}

Json operands_of(const std::vector<op::OperandSignature>& operands) {
  Json json;
  for (const op::OperandSignature& operand : operands) {
    json[operand.name] = {{"access", op::name(operand.access)},
                          {"element", name(operand.element)},
                          {"rank", operand.rank},
                          {"contiguous", operand.contiguous},
                          {"alignment", operand.alignment}};
  }
  return json;
}

// "f16r8_f16c8_f32r4_f32": the operands and the accumulator; "f16r8_f16c8_f32r4_f32_ragged_m" with groups.
std::string readable_part(const op::GemmSignature& gemm) {
  const std::string groups =
      gemm.groups == op::GroupedMode::none ? std::string() : fmt::format("_{}", op::name(gemm.groups));
  return fmt::format("{}_{}_{}_{}{}", short_name(gemm.a), short_name(gemm.b), short_name(gemm.d),
                     name(gemm.accumulator), groups);
}
std::string readable_part(const op::ReduceSplitKSignature& reduction) {
  return fmt::format("{}_{}_{}", short_name(reduction.parts), short_name(reduction.d), name(reduction.accumulator));
}
std::string readable_part(const std::vector<op::OperandSignature>& operands) {
  std::vector<std::string> parts;
  for (const op::OperandSignature& operand : operands)
    parts.push_back(fmt::format("{}{}", name(operand.element), operand.alignment));
  return fmt::format("{}", fmt::join(parts, "_"));
}

}  // namespace

std::string kernel_name(const KernelMetadata& metadata) {
  if (!metadata.name.empty()) return metadata.name;
  const plan::GemmTiling& tiling = plan::tiling(metadata.design);
  const std::string operands =
      std::visit([](const auto& each) { return readable_part(each); }, metadata.signature.operands);
  const std::string readable = fmt::format("{}_{}_{}x{}x{}_s{}_w{}x{}", metadata.family, operands, tiling.tile.m,
                                           tiling.tile.n, tiling.tile.k, tiling.stages, tiling.warps_m, tiling.warps_n);
  const std::string whole =
      fmt::format("{} {} {}", readable, op::to_string(metadata.signature), plan::to_string(metadata.design));
  return fmt::format("{}_{}", readable, sha256(whole).hex().substr(0, 8));
}

Support runs_on(const KernelMetadata& metadata, const Target& target) {
  if (target.has_features_of(Target{metadata.min_sm})) return {};
  return refuse("needs sm_{}, the target is {}", metadata.min_sm, target.name()).as(RefusalCode::architecture);
}

std::size_t hash_value(const KernelMetadata& metadata) {
  return std::hash<std::string>{}(metadata.family + plan::to_string(metadata.design) + metadata.name);
}

std::string to_json(const KernelMetadata& metadata) {
  const plan::FlatDesign design = plan::flatten(metadata.design, metadata.signature.gemm());
  nlohmann::ordered_json json{
      {"name", kernel_name(metadata)},
      {"family", metadata.family},
      {"operation", metadata.signature.operation},
      {"operands", std::visit([](const auto& each) { return operands_of(each); }, metadata.signature.operands)},
      {"design",
       {{"target", design.target.name()},
        {"op_class", plan::name(design.op_class)},
        {"instruction", to_value(design.instruction)},
        {"threadblock_shape", to_value(design.tile)},
        {"warp_count", {design.warps_m, design.warps_n, design.warps_k}},
        {"cluster_shape", to_value(design.cluster)},
        {"schedule", plan::name(design.schedule)},
        {"swaps_operands", design.swaps_operands},
        {"stages", design.stages},
        {"raster", {{"width", design.raster.width}, {"along", design.raster.along_n ? "n" : "m"}}},
        {"split_k", design.split_k},
        {"repacks_operands", design.repacks_operands}}},
      {"promises",
       {{"deterministic", metadata.promises.deterministic}, {"batch_invariant", metadata.promises.batch_invariant}}},
  };
  if (design.splits_in_turn) json["design"]["splits_in_turn"] = true;
  if (design.repacks_only_b) json["design"]["repacks_only_b"] = true;
  if (design.mix) json["design"]["mix"] = plan::name(*design.mix);
  if (metadata.permuted.any()) json["permuted"] = op::to_string(metadata.permuted);
  return json.dump();
}

}  // namespace tilewright::registry
