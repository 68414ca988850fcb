#include "tools/cli/emulate_arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tilewright/base/error.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/base/text.hpp"
#include "tools/cli/number.hpp"

namespace tilewright::cli {
namespace {

using emulator::PtxType;

struct ElementRow {
  std::string_view name;
  std::string_view numpy_name;  // empty where it is `name`
  std::string_view short_name;  // of Rust and LLVM; empty where it is `name`
  std::string_view descr;
  PtxType type;

  bool has_name(std::string_view text) const {
    return !text.empty() && (text == name || text == numpy_name || text == short_name);
  }
};
constexpr std::array<ElementRow, 15> kElements{{{"f64", "float64", "", "<f8", PtxType::f64},
                                                {"f32", "float32", "", "<f4", PtxType::f32},
                                                {"f16", "float16", "", "<f2", PtxType::f16},
                                                {"bf16", "bfloat16", "", "<u2", PtxType::bf16},
                                                {"e4m3", "float8_e4m3fn", "", "|u1", PtxType::e4m3},
                                                {"e5m2", "float8_e5m2", "", "|u1", PtxType::e5m2},
                                                {"s64", "int64", "i64", "<i8", PtxType::s64},
                                                {"s32", "int32", "i32", "<i4", PtxType::s32},
                                                {"s16", "int16", "i16", "<i2", PtxType::s16},
                                                {"s8", "int8", "i8", "|i1", PtxType::s8},
                                                {"u64", "uint64", "", "<u8", PtxType::u64},
                                                {"u32", "uint32", "", "<u4", PtxType::u32},
                                                {"u16", "uint16", "", "<u2", PtxType::u16},
                                                {"u8", "uint8", "", "|u1", PtxType::u8},
                                                {"bool", "", "", "|b1", PtxType::b8}}};

std::size_t bytes_of(const ElementRow& row) { return static_cast<std::size_t>(emulator::bytes(row.type)); }

/// The row of a type's name; kElements.end() if no type has it.
auto find_element(std::string_view name) {
  return std::ranges::find_if(kElements, [&](const ElementRow& row) { return row.has_name(name); });
}

/// "f64|float64 f32|float32 ..."
std::string type_names() {
  std::string names;
  for (const ElementRow& row : kElements) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", row.name);
    for (const std::string_view other : {row.short_name, row.numpy_name}) {
      if (!other.empty()) names += fmt::format("|{}", other);
    }
  }
  return names;
}

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

/// Refuses an item of --args, naming the parameter.
class ArgumentReader {
 public:
  ArgumentReader(const emulator::KernelParameter& parameter, std::size_t index, std::string item)
      : parameter_(parameter), index_(index), item_(std::move(item)) {}

  ArgumentItem read() const {
    if (item_.empty()) refuse("an empty item");
    const std::size_t colon = item_.find(':');
    if (item_.ends_with(".npy")) {
      const bool names_output = colon != std::string::npos && is_name(item_.substr(0, colon));
      return read_file(item_.substr(names_output ? colon + 1 : 0), names_output ? item_.substr(0, colon) : "");
    }
    const auto row = find_element(std::string_view(item_).substr(0, std::min(colon, item_.size())));
    if (colon != std::string::npos && row != kElements.end() && item_.find('[') == std::string::npos) {
      if (parameter_.is_pointer || parameter_.size != bytes_of(*row)) refuse(quoted());
      return fill_bytes(*row, item_.substr(colon + 1));
    }
    if (colon != std::string::npos) return make_output(item_.substr(0, colon), item_.substr(colon + 1));
    if (item_ == "null") {
      if (!parameter_.takes_array()) refuse("null");
      return emulator::integer_argument(parameter_, index_, false, 0);
    }
    return number(item_);
  }

 private:
  [[noreturn]] void refuse(const std::string& got) const {
    const std::string array = parameter_.takes_array() ? " (a.npy, NAME:TYPE[EXTENTS] or null)" : "";
    const std::string by_value = parameter_.is_struct ? " (a .npy file of that size)" : "";
    throw InvalidArgument(fmt::format("--args: parameter {} takes {}{}{}, got {}", index_,
                                      emulator::to_string(parameter_), array, by_value, got));
  }

  std::string quoted() const { return fmt::format("'{}'", printable(item_, 200)); }

  static bool is_name(const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  }

  ArgumentItem read_file(const std::string& path, const std::string& output) const {
    NpyArray array = read_npy_array(path);
    if (parameter_.takes_array()) return ArrayItem{std::move(array), true, path, output.empty() ? "" : output + ".npy"};
    if (!output.empty()) refuse(fmt::format("{}, but only an array can be written", quoted()));
    if (array.data.size() != parameter_.size) refuse(fmt::format("{} of {} bytes", quoted(), array.data.size()));
    return std::move(array.data);
  }

  ArgumentItem make_output(const std::string& name, const std::string& rest) const {
    if (!parameter_.takes_array()) refuse(quoted());
    const std::size_t open = rest.find('['), close = rest.find(']');
    const std::string type = rest.substr(0, open);
    const auto row = find_element(type);
    if (!is_name(name) || row == kElements.end() || open == std::string::npos || close == std::string::npos) {
      refuse(fmt::format("{}: an array is NAME:TYPE[EXTENTS] with a type of {}", quoted(), type_names()));
    }
    ArrayItem item{{std::string(row->descr), {}, {}}, false, "", name + ".npy"};
    std::int64_t bytes = static_cast<std::int64_t>(bytes_of(*row));
    for (const std::string& digits : split_arguments(rest.substr(open + 1, close - open - 1))) {
      const std::optional<std::int64_t> extent = read_integer<std::int64_t>(digits, {0, kMaxBytes});
      if (!extent || __builtin_mul_overflow(bytes, std::max<std::int64_t>(*extent, 1), &bytes) || bytes > kMaxBytes)
        refuse(fmt::format("{}: an extent must be an integer, of at most {} bytes in all", quoted(), kMaxBytes));
      item.array.shape.push_back(*extent);
    }
    if (item.array.shape.empty()) refuse(fmt::format("{}, which has no extent", quoted()));
    const auto count = static_cast<std::size_t>(item.array.elements());
    item.array.data.assign(count * bytes_of(*row), std::byte{0xff});
    const std::string fill = rest.substr(close + 1);
    if (fill.empty()) return item;
    if (!fill.starts_with('=')) refuse(quoted());
    const std::vector<std::byte> value = fill_bytes(*row, fill.substr(1));
    for (std::size_t i = 0; i < count; ++i)
      std::ranges::copy(value, item.array.data.begin() + static_cast<std::ptrdiff_t>(i * bytes_of(*row)));
    item.initialised = true;
    return item;
  }

  std::vector<std::byte> fill_bytes(const ElementRow& row, const std::string& text) const {
    const emulator::KernelParameter element{row.type, bytes_of(row), false, false};
    try {
      return number_of(element, text);
    } catch (const InvalidArgument&) {
      refuse(fmt::format("{}: '{}' is no {}", quoted(), printable(text, 40), row.name));
    }
  }

  ArgumentItem number(const std::string& text) const { return number_of(parameter_, text); }

  std::vector<std::byte> number_of(const emulator::KernelParameter& parameter, const std::string& text) const {
    if (parameter.is_struct) refuse(quoted());
    if (text == "true" || text == "false") return emulator::integer_argument(parameter, index_, false, text == "true");
    const bool negative = text.starts_with('-');
    std::string_view digits = std::string_view(text).substr(negative ? 1 : 0);
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    std::uint64_t magnitude = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, hexadecimal ? 16 : 10);
    if (result.ec == std::errc() && result.ptr == digits.data() + digits.size() && !digits.empty())
      return emulator::integer_argument(parameter, index_, negative, magnitude);
    double real = 0;
    try {
      real = parse_real("--args", text);
    } catch (const InvalidArgument&) {
      refuse(quoted());
    }
    return emulator::real_argument(parameter, index_, real);
  }

  const emulator::KernelParameter& parameter_;
  std::size_t index_;
  std::string item_;
};

}  // namespace

std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> items;
  if (text.find_first_not_of(" \t") == std::string::npos) return items;
  int depth = 0;
  std::string item;
  const auto finish = [&] {
    const std::size_t begin = item.find_first_not_of(" \t");
    const std::size_t end = item.find_last_not_of(" \t");
    items.push_back(begin == std::string::npos ? "" : item.substr(begin, end + 1 - begin));
    item.clear();
  };
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) {
      finish();
    } else {
      item += c;
    }
  }
  finish();
  return items;
}

std::vector<ArgumentItem> read_arguments(const std::string& text, const emulator::KernelInfo& kernel) {
  const std::vector<std::string> items = split_arguments(text);
  const auto& parameters = kernel.parameters;
  if (items.size() != parameters.size()) {
    std::string takes;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      takes += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, emulator::to_string(parameters[i]));
    throw InvalidArgument(fmt::format("--args: {} takes {} arguments ({}), got {}", printable(kernel.name, 200),
                                      parameters.size(), takes, items.size()));
  }
  std::vector<ArgumentItem> arguments;
  for (std::size_t i = 0; i < items.size(); ++i) arguments.push_back(ArgumentReader(parameters[i], i, items[i]).read());
  return arguments;
}

std::vector<std::string> other_elements(const std::vector<ArgumentItem>& items, const emulator::KernelInfo& kernel) {
  const auto name_of = [](PtxType type) {
    const auto row = std::ranges::find(kElements, type, &ElementRow::type);
    return row == kElements.end() ? std::string_view("another type") : row->name;
  };
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto* const array = std::get_if<ArrayItem>(&items[i]);
    if (array == nullptr) continue;
    // Several types have the same `descr`; NumPy's own type is the last of them in the table.
    const auto row = std::ranges::find(kElements.rbegin(), kElements.rend(), array->array.descr, &ElementRow::descr);
    if (row == kElements.rend() || !emulator::is_other_element(kernel.parameters[i], row->type)) continue;
    sentences.push_back(fmt::format("--args: parameter {} of {} points to {}, and the array has elements of {}", i,
                                    printable(kernel.signature, 200), name_of(*kernel.parameters[i].element),
                                    row->name));
  }
  return sentences;
}

}  // namespace tilewright::cli
