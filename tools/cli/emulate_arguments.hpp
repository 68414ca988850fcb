// The kernel arguments of `tilewright emulate`: --args a.npy,out:f32[1024],3.5
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/emulator/emulated_module.hpp"
#include "tools/cli/npy.hpp"

namespace tilewright::cli {

/// One item of --args that stands for an array.
struct ArrayItem {
  NpyArray array;
  bool initialised = true;
  std::string input;   // the file it was read from; empty: none
  std::string output;  // the file it is written to; empty: none
};

/// One item of --args: an array, or the bytes of a parameter that is passed by value.
using ArgumentItem = std::variant<ArrayItem, std::vector<std::byte>>;

/// Splits at commas outside of brackets. Blanks around an item do not count; an empty text has no items.
std::vector<std::string> split_arguments(const std::string& text);

/// Reads the arguments of a kernel. An item is one of
///   a.npy            an array that the kernel reads, or a struct as bytes
///   out:f32[32,64]   an array that is written to out.npy after the launch, with uninitialised contents
///   out:f32[32]=0    the same, filled with a number
///   out:a.npy        the array of a.npy, written to out.npy after the launch
///   12, -3.5, null   a number of the parameter's type; a null pointer
///   f16:1.5          a number of this type, for a parameter whose type is not known, such as a struct of its size
/// @throws InvalidArgument that names the parameter's index and what it takes
std::vector<ArgumentItem> read_arguments(const std::string& text, const emulator::KernelInfo& kernel);

/// One sentence for each array whose elements are not those that its parameter points to, as far as the kernel's name
/// says what that is: "--args: parameter 0 of k(float const*) points to f32, and the array has elements of f64".
std::vector<std::string> other_elements(const std::vector<ArgumentItem>& items, const emulator::KernelInfo& kernel);

}  // namespace tilewright::cli
