#include "tilewright/registry/metadata.hpp"

#include <nlohmann/json.hpp>

#include "tilewright/base/hash.hpp"

namespace tilewright::registry {
namespace {

// "f16r8": element, r or c for its layout, alignment in elements.
std::string short_name(const op::TensorDescription& tensor) {
  return fmt::format("{}{}{}", name(tensor.element), tensor.layout == op::MatrixLayout::row_major ? 'r' : 'c',
                     tensor.alignment);
}

nlohmann::ordered_json describe(const op::TensorDescription& tensor) {
  return {{"element", name(tensor.element)}, {"layout", op::name(tensor.layout)}, {"alignment", tensor.alignment}};
}

}  // namespace

std::string kernel_name(const KernelMetadata& metadata) {
  if (!metadata.name.empty()) return metadata.name;
  const op::GemmDescription& operands = metadata.operands;
  const plan::TileDescription& tile = metadata.design.tile;
  const std::string readable =
      fmt::format("{}_{}_{}_{}_{}_{}_s{}_w{}", metadata.family, short_name(operands.a), short_name(operands.b),
                  short_name(operands.d), name(operands.accumulator), fmt::join(tile.threadblock_shape, "x"),
                  tile.stages, fmt::join(tile.warp_count, "x"));
  // The order of scalars is that of the launch arguments, and not always that of the formula.
  const std::string whole = fmt::format("{} {} {} {} {} {}", readable, operands.has_c ? short_name(operands.c) : "none",
                                        op::name(operands.math), op::signature(operands.epilogue),
                                        fmt::join(operands.epilogue.scalars(), ","), plan::to_string(metadata.design)) +
                            (operands.tensors.empty() ? "" : ' ' + op::to_string(operands.tensors));
  return fmt::format("{}_{}", readable, sha256(whole).hex().substr(0, 8));
}

Support runs_on(const KernelMetadata& metadata, const Target& target) {
  if (target.sm >= metadata.min_sm) return {};
  return refuse("needs sm_{}, the target is {}", metadata.min_sm, target.name()).as(RefusalCode::architecture);
}

std::size_t hash_value(const KernelMetadata& metadata) {
  return std::hash<std::string>{}(metadata.family + plan::to_string(metadata.design) + metadata.name);
}

std::string to_json(const KernelMetadata& metadata) {
  const op::GemmDescription& operands = metadata.operands;
  const plan::TileDescription& tile = metadata.design.tile;
  const plan::MathInstruction& math = tile.math_instruction;
  const nlohmann::ordered_json json{
      {"name", kernel_name(metadata)},
      {"family", metadata.family},
      {"operands",
       {{"a", describe(operands.a)},
        {"b", describe(operands.b)},
        {"c", operands.has_c ? describe(operands.c) : nullptr},
        {"d", describe(operands.d)},
        {"accumulator", name(operands.accumulator)}}},
      {"design",
       {{"target", metadata.design.target.name()},
        {"op_class", plan::name(math.op_class)},
        {"math", op::name(math.math_operation)},
        {"instruction", math.shape},
        {"threadblock_shape", tile.threadblock_shape},
        {"warp_count", tile.warp_count},
        {"cluster_shape", tile.cluster_shape},
        {"schedule", plan::name(tile.schedule)},
        {"swaps_operands", tile.swaps_operands},
        {"stages", tile.stages},
        {"raster", {{"width", metadata.design.raster.width}, {"groups_rows", metadata.design.raster.groups_rows}}},
        {"split_k", metadata.design.split_k},
        {"repacks_operands", metadata.design.repacks_operands}}},
      {"epilogue",
       {{"name", operands.epilogue.name},
        {"compute", name(operands.epilogue.compute)},
        {"graph", op::signature(operands.epilogue)},
        {"tensors", op::to_string(operands.tensors)}}},
  };
  return json.dump();
}

}  // namespace tilewright::registry
