// The launch of a program with given arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/program/program.hpp"

namespace tilewright::program {

/// The values of a program's parameters by name: integers, addresses of arrays (also those of tensor maps), scalars.
class LaunchArguments {
 public:
  LaunchArguments& integer(std::string_view name, std::int64_t value);
  LaunchArguments& address(std::string_view name, std::uint64_t value);
  LaunchArguments& scalar(std::string_view name, double value);

  const std::vector<std::pair<std::string, std::int64_t>>& integers() const { return integers_; }
  const std::vector<std::pair<std::string, std::uint64_t>>& addresses() const { return addresses_; }
  const std::vector<std::pair<std::string, double>>& scalars() const { return scalars_; }

 private:
  std::vector<std::pair<std::string, std::int64_t>> integers_;
  std::vector<std::pair<std::string, std::uint64_t>> addresses_;
  std::vector<std::pair<std::string, double>> scalars_;
};

/// Refuses a parameter without argument; an integer that is not in its range or no multiple of its divisor; a
/// misaligned address; a condition of the program that does not hold; a tensor that TMA cannot address; an empty grid.
Support check_arguments(const Program& program, const LaunchArguments& arguments);

/// An array that a caller gives for an address or a tensor map, in elements, by mode.
struct ArrayLayout {
  std::vector<std::int64_t> extents, strides;
};

/// Refuses an array that is not the tensor which the kernel declares for the parameter, for these integers. An element
/// of the tensor must be the element of the array with the same coordinates: strides are equal, and extents not larger
/// than the array's. Of an array in row-major order, the modes may also be declared in another order, and modes that
/// follow each other as one. An array for an address without a tensor must be in row-major order, in which rows may be
/// padded.
Support check_array(const Program& program, const LaunchArguments& arguments, std::string_view name,
                    const ArrayLayout& array);

/// Grid, parameters and tensor maps of one launch. @pre check_arguments()
plan::Launch launch(const Program& program, const LaunchArguments& arguments);

}  // namespace tilewright::program
