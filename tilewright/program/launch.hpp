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

/// Grid, parameters and tensor maps of one launch. @pre check_arguments()
plan::Launch launch(const Program& program, const LaunchArguments& arguments);

}  // namespace tilewright::program
