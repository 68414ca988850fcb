#include "tilewright/program/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace tilewright::program {
namespace {

template <class T>
const T* find(const std::vector<std::pair<std::string, T>>& arguments, std::string_view name) {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(), [&](const auto& each) { return each.first == name; });
  return found == arguments.end() ? nullptr : &found->second;
}

Refusal missing(const Parameter& parameter) {
  return refuse("the kernel's parameter '{}' has no argument", parameter.name);
}

Support check_integer(const Parameter& parameter, std::int64_t value) {
  const Number& variable = parameter.variable;
  if (value < variable.lower() || value > variable.upper())
    return refuse("{} must be from {} to {}, got {}", parameter.name, variable.lower(), variable.upper(), value)
        .as(RefusalCode::shape);
  if (value % variable.divisor() != 0)
    return refuse("{} must be a multiple of {}, got {}", parameter.name, variable.divisor(), value)
        .as(RefusalCode::alignment);
  return {};
}

TensorMap tensor_map(const TensorMapSource& source, const layout::Bindings& bindings, std::uint64_t address) {
  TensorMap map = source.map;
  map.address = address;
  for (std::size_t mode = 0; mode < source.extents.size(); ++mode) {
    map.extents[mode] = static_cast<std::uint64_t>(evaluate(source.extents[mode], bindings));
    map.strides[mode] = static_cast<std::uint64_t>(evaluate(source.strides[mode], bindings));
  }
  return map;
}

}  // namespace

LaunchArguments& LaunchArguments::integer(std::string_view name, std::int64_t value) {
  integers_.emplace_back(name, value);
  return *this;
}
LaunchArguments& LaunchArguments::address(std::string_view name, std::uint64_t value) {
  addresses_.emplace_back(name, value);
  return *this;
}
LaunchArguments& LaunchArguments::scalar(std::string_view name, double value) {
  scalars_.emplace_back(name, value);
  return *this;
}

namespace {

/// The values of all integers: those of the arguments, then those that are computed from them.
Result<layout::Bindings> bind(const Program& program, const LaunchArguments& arguments) {
  layout::Bindings bindings;
  for (const Parameter& parameter : program.parameters) {
    if (parameter.kind != Parameter::Kind::integer) continue;
    std::int64_t value = 0;
    if (parameter.computed) {
      value = evaluate(*parameter.computed, bindings);
    } else {
      const std::int64_t* given = find(arguments.integers(), parameter.name);
      if (given == nullptr) return missing(parameter);
      value = *given;
    }
    if (const Support valid = check_integer(parameter, value); !valid) return valid.refusal();
    bindings.set(parameter.variable, value);
  }
  return bindings;
}

}  // namespace

Support check_arguments(const Program& program, const LaunchArguments& arguments) {
  const Result<layout::Bindings> bindings = bind(program, arguments);
  if (!bindings) return bindings.refusal();
  for (const LaunchCondition& condition : program.conditions) {
    if (evaluate(condition.holds, *bindings) == 0)
      return refuse("{}, got {}", condition.reason, evaluate(condition.number, *bindings)).as(RefusalCode::shape);
  }
  for (std::size_t mode = 0; mode < 3; ++mode) {
    const std::int64_t ctas = evaluate(program.grid[mode], *bindings), most = mode == 0 ? 0x7fffffff : 0xffff;
    if (ctas < 1) return refuse("the grid has {} CTAs", ctas).as(RefusalCode::shape);
    if (ctas > most)
      return refuse("the grid has {} CTAs along {}, at most {} are possible", ctas, "xyz"[mode], most)
          .as(RefusalCode::shape);
  }
  if (const std::int64_t bytes = evaluate(program.workspace_bytes, *bindings); bytes > plan::kMaxWorkspaceBytes) {
    return refuse("the workspace has {} bytes, at most {} are possible", bytes, plan::kMaxWorkspaceBytes)
        .as(RefusalCode::shape);
  }
  std::size_t next_map = 0;
  for (const Parameter& parameter : program.parameters) {
    if (parameter.kind == Parameter::Kind::integer || parameter.kind == Parameter::Kind::workspace) continue;
    if (parameter.kind == Parameter::Kind::scalar) {
      if (find(arguments.scalars(), parameter.name) == nullptr) return missing(parameter);
      continue;
    }
    const std::uint64_t* address = find(arguments.addresses(), parameter.name);
    if (address == nullptr) return missing(parameter);
    if (*address % static_cast<std::uint64_t>(parameter.alignment) != 0)
      return refuse("the address of {} must be a multiple of {} bytes, got {:#x}", parameter.name, parameter.alignment,
                    *address)
          .as(RefusalCode::alignment);
    if (parameter.kind != Parameter::Kind::tensor_map) continue;
    const TensorMap map = tensor_map(program.tensor_maps[next_map++], *bindings, *address);
    if (const Support valid = check(map); !valid)
      return refuse("{}: {}", parameter.name, valid.reason()).as(valid.refusal().code);
  }
  return {};
}

namespace {

/// A mode of an array or a tensor.
struct Mode {
  std::int64_t extent = 1, stride = 1;
};
using Modes = std::vector<Mode>;

Modes modes_of(const ArrayLayout& array) {
  Modes modes;
  for (std::size_t i = 0; i < array.extents.size(); ++i) modes.push_back({array.extents[i], array.strides[i]});
  return modes;
}

/// Whether the rows of the array follow each other, with their elements side by side.
bool is_row_major(const Modes& modes) {
  std::int64_t least = 1;
  for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode) {
    if (mode->extent == 1) continue;
    if (least == 1 ? mode->stride != 1 : mode->stride < least) return false;
    least = mode->extent * mode->stride;
  }
  return true;
}

/// The modes with several elements, from the largest stride to the smallest.
Modes in_memory_order(Modes modes) {
  std::erase_if(modes, [](const Mode& mode) { return mode.extent == 1; });
  std::ranges::stable_sort(modes, std::ranges::greater(), &Mode::stride);
  return modes;
}

/// The modes in memory order, where those that follow each other are one.
Modes coalesced(const Modes& modes) {
  Modes result;
  for (const Mode& mode : in_memory_order(modes)) {
    if (!result.empty() && result.back().stride == mode.extent * mode.stride) {
      result.back() = {result.back().extent * mode.extent, mode.stride};
    } else {
      result.push_back(mode);
    }
  }
  return result;
}

/// Whether each element of the tensor is that of the array with the same coordinates.
bool is_part_of(const Modes& tensor, const Modes& array) {
  return std::ranges::equal(tensor, array, [](const Mode& of_tensor, const Mode& of_array) {
    return of_tensor.extent <= of_array.extent && (of_tensor.extent == 1 || of_tensor.stride == of_array.stride);
  });
}

/// "(64, 128)"
std::string listed(const std::vector<std::int64_t>& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

}  // namespace

Support check_array(const Program& program, const LaunchArguments& arguments, std::string_view name,
                    const ArrayLayout& array) {
  const auto parameter = std::ranges::find(program.parameters, name, &Parameter::name);
  if (parameter == program.parameters.end() || std::ranges::find(array.extents, 0) != array.extents.end()) return {};
  const Modes given = modes_of(array);
  if (parameter->extents.empty()) {
    if (is_row_major(given)) return {};
    return refuse(
               "{} takes the address of '{}' as memory in row-major order; the array has the shape {} and the strides "
               "{}, in elements: give a row-major copy of it",
               program.symbol, name, listed(array.extents), listed(array.strides))
        .as(RefusalCode::strides);
  }
  const Result<layout::Bindings> bindings = bind(program, arguments);
  if (!bindings) return bindings.refusal();
  ArrayLayout declared;
  for (std::size_t mode = 0; mode < parameter->extents.size(); ++mode) {
    declared.extents.push_back(evaluate(parameter->extents[mode], *bindings));
    declared.strides.push_back(evaluate(parameter->strides[mode], *bindings));
  }
  const Modes tensor = modes_of(declared);
  if (is_part_of(tensor, given)) return {};
  if (is_row_major(given)) {
    if (is_part_of(in_memory_order(tensor), in_memory_order(given))) return {};
    if (tensor.size() != given.size() && is_part_of(coalesced(tensor), coalesced(given))) return {};
  }
  return refuse(
             "{} declares the Tensor '{}' with extents {} and strides {} for this launch; the array has the shape {} "
             "and the strides {}, in elements",
             program.symbol, name, listed(declared.extents), listed(declared.strides), listed(array.extents),
             listed(array.strides))
      .as(RefusalCode::strides);
}

plan::Launch launch(const Program& program, const LaunchArguments& arguments) {
  const layout::Bindings bindings = bind(program, arguments).value_or_throw();
  plan::Launch launch;
  std::size_t next_map = 0;
  for (const Parameter& parameter : program.parameters) {
    switch (parameter.kind) {
      case Parameter::Kind::integer:
        launch.append(static_cast<std::int32_t>(evaluate(parameter.variable, bindings)));
        break;
      case Parameter::Kind::scalar:
        launch.append(static_cast<float>(*find(arguments.scalars(), parameter.name)));
        break;
      case Parameter::Kind::address:
        launch.append(*find(arguments.addresses(), parameter.name));
        break;
      case Parameter::Kind::workspace:
        launch.append_workspace(static_cast<std::size_t>(evaluate(program.workspace_bytes, bindings)));
        break;
      case Parameter::Kind::tensor_map:
        launch.append(plan::TensorMapRequest{.map = tensor_map(program.tensor_maps[next_map++], bindings,
                                                               *find(arguments.addresses(), parameter.name))});
        break;
    }
  }
  launch.finish(program.tensor_maps.empty() ? 8 : plan::kTensorMapAlignment);
  for (std::size_t mode = 0; mode < 3; ++mode) {
    launch.grid[mode] = static_cast<std::uint32_t>(evaluate(program.grid[mode], bindings));
    launch.cluster[mode] = static_cast<std::uint32_t>(program.cluster[mode]);
  }
  launch.block = {static_cast<std::uint32_t>(program.threads), 1, 1};
  launch.waits_for_last_kernel = program.waits_for_last_kernel;
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(program.shared_bytes);
  return launch;
}

}  // namespace tilewright::program
