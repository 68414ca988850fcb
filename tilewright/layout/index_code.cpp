#include "tilewright/layout/index_code.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/bit_field.hpp"
#include "tilewright/layout/conditions.hpp"

namespace tilewright::layout {
namespace {

using Fields = std::vector<BitField>;

int log2(std::int64_t n) { return std::countr_zero(static_cast<std::uint64_t>(n)); }

/// The term of one leaf of a mode: stride * (v / place % extent), without % for the last leaf.
struct Digit {
  std::int64_t place;
  std::int64_t extent;
  std::int64_t stride;
  bool is_last;

  /// Whether its value is a range of bits of the variable.
  bool is_bits() const { return is_power_of_two(place) && (is_last || is_power_of_two(extent)); }
};

/// The digits of a variable with values below `extent`.
std::vector<Digit> digits_of(const Layout& mode, std::int64_t extent) {
  const Layout merged = coalesce(mode);
  const std::vector<std::int64_t> extents = leaves(merged.shape());
  const std::vector<std::int64_t> strides = leaves(merged.stride());
  std::vector<Digit> digits;
  std::int64_t place = 1;
  for (std::size_t i = 0; i < extents.size() && place < extent; place *= extents[i++]) {
    const std::int64_t values = std::min(extents[i], ceil_div(extent, place));
    digits.push_back({place, values, strides[i], place * values >= extent});
  }
  return digits;
}

/// A variable, and its number in the layout.
struct Operand {
  CExpression code;
  int number;
  std::int64_t extent;
};

CExpression quotient(const CExpression& x, std::int64_t divisor) {
  return is_power_of_two(divisor) ? x >> log2(divisor) : x / divisor;
}

CExpression remainder(const CExpression& x, std::int64_t divisor) {
  return is_power_of_two(divisor) ? x & (divisor - 1) : x % divisor;
}

BitField bits_field(const Operand& x, const Digit& digit) {
  const BitSet all = bits_below(x.extent);
  const BitSet from_place = all & ~bits_below(digit.place);
  const BitSet mask = digit.is_last ? from_place : from_place & bits_below(digit.place * digit.extent);
  BitField field = BitField::term(x.code, all, mask, log2(digit.place), digit.stride);
  field.variable = x.number;
  return field;
}

BitField divided_field(const Operand& x, const Digit& digit) {
  const CExpression upper = quotient(x.code, digit.place);
  const BitSet bits = bits_below(digit.extent);
  return BitField::term(digit.is_last ? upper : remainder(upper, digit.extent), bits, bits, 0, digit.stride);
}

/// The sum of digits with one division per digit: because v / p % e is v / p - e * (v / (p * e)),
/// sum_i d_i * digit_i is sum_i (d_i - e_(i-1) * d_(i-1)) * (v / p_i).
CExpression telescoped(const Operand& x, const std::vector<Digit>& digits) {
  Fields terms;
  std::int64_t carried = 0;
  for (const Digit& digit : digits) {
    const std::int64_t coefficient = digit.stride - carried;
    carried = digit.extent * digit.stride;
    if (coefficient == 0) continue;
    const BitSet bits = bits_below(ceil_div(x.extent, digit.place));
    terms.push_back(BitField::term(quotient(x.code, digit.place), bits, bits, 0, coefficient));
  }
  return sum_of(terms, CodeStyle::arithmetic);
}

std::pair<std::ptrdiff_t, std::size_t> cost(const std::string& text) {
  const auto divisions = std::count_if(text.begin(), text.end(), [](char c) { return c == '/' || c == '%'; });
  return {divisions, text.size()};
}

/// Fields for the digits that need division: one per digit, or, unless keeps_digits, the telescoped sum if it is
/// cheaper.
Fields divided_fields(const Operand& x, const std::vector<Digit>& digits, bool keeps_digits) {
  Fields fields;
  BitSet bits = 0;
  for (const Digit& digit : digits) {
    if (digit.stride == 0) continue;
    fields.push_back(divided_field(x, digit));
    bits = sum_bits(bits, bits_of(fields.back()));
  }
  if (keeps_digits || digits.empty()) return fields;
  const CExpression sum = telescoped(x, digits);
  const bool is_cheaper = cost(sum.text()) < cost(sum_of(fields, CodeStyle::arithmetic).text());
  return is_cheaper ? Fields{BitField::whole(sum, bits)} : fields;
}

Fields fields_of(const Operand& x, const Layout& mode, bool keeps_digits) {
  const std::vector<Digit> digits = digits_of(mode, x.extent);
  const auto tail = std::find_if(digits.begin(), digits.end(), [](const Digit& digit) { return !digit.is_bits(); });
  Fields fields = divided_fields(x, {tail, digits.end()}, keeps_digits);
  for (auto digit = digits.begin(); digit != tail; ++digit) {
    if (digit->stride != 0) add_field(fields, bits_field(x, *digit));
  }
  std::stable_sort(fields.begin(), fields.end(),
                   [](const BitField& a, const BitField& b) { return bits_of(a) > bits_of(b); });
  return fields;
}

/// Whether the name has only letters, digits, '_', '.' and ':' (members, scopes) and does not begin with a digit.
bool is_c_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
         });
}

Operand operand(const IndexVariable& variable, int number, const Layout& mode) {
  if (!is_c_name(variable.name))
    throw InvalidArgument(fmt::format("'{}' is not a C name", printable(variable.name, 40)));
  const std::int64_t extent = variable.extent == 0 ? size(mode) : variable.extent;
  if (extent < 1 || extent > size(mode))
    throw InvalidArgument(
        fmt::format("{} has {} values, but its mode {} has {}", variable.name, extent, to_string(mode), size(mode)));
  return {CExpression(variable.name), number, extent};
}

Fields fields_of(const Layout& layout, const std::vector<IndexVariable>& variables, bool keeps_digits) {
  if (variables.size() == 1) return fields_of(operand(variables.front(), 0, layout), layout, keeps_digits);
  if (static_cast<int>(variables.size()) != layout.rank())
    throw InvalidArgument(
        fmt::format("{} takes 1 or {} variables, got {}", to_string(layout), layout.rank(), variables.size()));
  Fields fields;
  for (int i = 0; i < layout.rank(); ++i) {
    const Layout mode = layout.mode(i);
    const Operand x = operand(variables[static_cast<std::size_t>(i)], i, mode);
    const Fields more = fields_of(x, mode, keeps_digits);
    fields.insert(fields.end(), more.begin(), more.end());
  }
  return fields;
}

bool are_disjoint(const Fields& fields) {
  BitSet seen = 0;
  for (const BitField& field : fields) {
    if (field.is_negative() || (seen & bits_of(field)) != 0) return false;
    seen |= bits_of(field);
  }
  return true;
}

BitField constant_field(std::int64_t value) { return BitField::whole(value, static_cast<BitSet>(value)); }

std::string shorter(const CExpression& a, const CExpression& b) {
  std::string first = a.text();
  std::string second = b.text();
  return second.size() < first.size() ? second : first;
}

/// The sum with * and + or, in the shortest style, with << and |.
std::string sum_code(const Fields& fields, IndexStyle style) {
  if (style == IndexStyle::sums) return sum_of(fields, CodeStyle::quotients).text();
  const CExpression sum = sum_of(fields, CodeStyle::arithmetic);
  return are_disjoint(fields) ? shorter(sum, sum_of(fields, CodeStyle::bitwise)) : sum.text();
}

/// The same sum as fields that share no bit: fields that may carry into each other are merged. All factors become 1.
Fields without_carries(const Fields& terms) {
  Fields fields;
  for (BitField field : terms) {
    if (field.factor != 1) field = BitField::whole(code_of(field, CodeStyle::arithmetic), bits_of(field));
    for (std::size_t i = 0; i < fields.size();) {
      if ((bits_of(fields[i]) & bits_of(field)) == 0) {
        ++i;
        continue;
      }
      field = BitField::whole(sum_of({fields[i], field}, CodeStyle::arithmetic),
                              sum_bits(bits_of(fields[i]), bits_of(field)));
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    fields.push_back(field);
  }
  return fields;
}

/// Fields whose XOR is swizzle(sum of `fields`). A swizzle is linear over bits: each field remains, and its source bits
/// are added once more, shifted.
Fields swizzled(const Swizzle& swizzle, const Fields& fields) {
  const BitSet source = static_cast<BitSet>(source_bits(swizzle));
  Fields all;
  for (const BitField& field : fields) {
    if (field.base.is_constant()) {
      all.push_back(constant_field(swizzle(static_cast<std::int64_t>(bits_of(field)))));
    } else {
      all.push_back(field);
    }
  }
  for (BitField field : fields) {
    field.mask &= shifted(source, -field.shift);
    field.shift -= swizzle.shift();
    if (field.mask != 0 && !field.base.is_constant()) add_field(all, field);
  }
  return all;
}

/// Fields that have bits in common, combined by ^.
struct XorGroup {
  Fields fields;
  BitSet bits = 0;
};

std::vector<XorGroup> group_by_bits(const Fields& fields) {
  std::vector<XorGroup> groups;
  for (const BitField& field : fields) {
    XorGroup joined;
    for (auto group = groups.begin(); group != groups.end();) {
      if ((group->bits & bits_of(field)) == 0) {
        ++group;
        continue;
      }
      joined.fields.insert(joined.fields.end(), group->fields.begin(), group->fields.end());
      joined.bits |= group->bits;
      group = groups.erase(group);
    }
    joined.fields.push_back(field);
    joined.bits |= bits_of(field);
    groups.push_back(std::move(joined));
  }
  return groups;
}

/// The XOR of the fields, where the left shift by `less` that they share is done last.
CExpression xor_of(Fields fields, int less, CodeStyle style) {
  CExpression code = 0;
  for (BitField& field : fields) {
    field.shift -= less;
    code = code ^ code_of(field, style);
  }
  return style == CodeStyle::bitwise ? code << less : code * (std::int64_t{1} << less);
}

/// A left shift that all fields share is done once, after the XOR, if that is shorter.
CExpression code_of(const XorGroup& group, CodeStyle style) {
  const auto least = std::min_element(group.fields.begin(), group.fields.end(),
                                      [](const BitField& a, const BitField& b) { return a.shift < b.shift; });
  const CExpression apart = xor_of(group.fields, 0, style);
  if (least->shift <= 0) return apart;
  const CExpression together = xor_of(group.fields, least->shift, style);
  return together.text().size() < apart.text().size() ? together : apart;
}

std::string xor_code(const Fields& fields, IndexStyle style) {
  CExpression sum = 0;
  CExpression bits = 0;
  for (const XorGroup& group : group_by_bits(fields)) {
    sum = sum + code_of(group, style == IndexStyle::sums ? CodeStyle::quotients : CodeStyle::arithmetic);
    bits = bits | code_of(group, CodeStyle::bitwise);
  }
  return style == IndexStyle::sums ? sum.text() : shorter(sum, bits);
}

/// Paths to the leaves of a tree, in order.
void collect_leaves(const IntTuple& tree, const Basis& path, std::vector<Basis>& paths) {
  if (tree.is_leaf()) {
    paths.push_back(path);
    return;
  }
  for (int i = 0; i < tree.rank(); ++i) collect_leaves(tree[i], path.child(i), paths);
}

/// The layout of one component of the coordinate: strides with another basis are 0.
Layout along(const Layout& layout, const Basis& path) {
  return {layout.shape(), transform_leaves(layout.stride(), [&](const IntTuple& stride) {
            return IntTuple(stride.basis() == path ? stride.basis_value() : 0);
          })};
}

/// The smallest offset of a layout.
std::int64_t least_offset(const Layout& layout) {
  const std::vector<std::int64_t> extents = leaves(layout.shape());
  const std::vector<std::int64_t> strides = leaves(layout.stride());
  std::int64_t least = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) least += std::min<std::int64_t>(0, (extents[i] - 1) * strides[i]);
  return least;
}

}  // namespace

std::string index_code(const Layout& layout, const std::vector<IndexVariable>& variables, IndexStyle style) {
  return sum_code(fields_of(layout, variables, false), style);
}

std::string index_code(const ComposedLayout& layout, const std::vector<IndexVariable>& variables, IndexStyle style) {
  const std::int64_t offset = layout.offset.value();
  if (offset < 0 || least_offset(layout.layout) < 0)
    throw InvalidArgument(
        fmt::format("{}: code for a swizzle needs an offset and strides that are not negative", to_string(layout)));
  const bool swizzles = layout.swizzle.bits() != 0;
  Fields fields = fields_of(layout.layout, variables, swizzles);
  if (offset != 0) fields.push_back(constant_field(offset));
  return swizzles ? xor_code(swizzled(layout.swizzle, without_carries(fields)), style) : sum_code(fields, style);
}

Number index_number(const Layout& layout, const std::vector<Number>& coordinates) {
  const bool is_index = coordinates.size() == 1;
  if (!is_index && static_cast<int>(coordinates.size()) != layout.rank())
    throw InvalidArgument(
        fmt::format("{} takes 1 or {} coordinates, got {}", to_string(layout), layout.rank(), coordinates.size()));
  Number offset = 0;
  for (int i = 0; i < static_cast<int>(coordinates.size()); ++i) {
    const Layout mode = coalesce(is_index ? layout : layout.mode(i));
    const Number& coordinate = coordinates[static_cast<std::size_t>(i)];
    require(both(less_equal(0, coordinate), less(coordinate, size_of(mode))), [&] {
      return fmt::format("coordinate {} is from {} to {}, but its mode {} has {} values", to_string(coordinate),
                         coordinate.lower(), coordinate.upper(), to_string(mode), to_string(size_of(mode)));
    });
    offset += mode.at(IntTuple(coordinate));
  }
  return offset;
}

Number index_number(const ComposedLayout& layout, const std::vector<Number>& coordinates) {
  return layout.swizzle.at(layout.offset + index_number(layout.layout, coordinates));
}

std::vector<std::string> coordinate_code(const Layout& layout, const std::vector<IndexVariable>& variables,
                                         IndexStyle style) {
  std::vector<Basis> paths;
  collect_leaves(coshape(layout), {}, paths);
  std::vector<std::string> code;
  for (const Basis& path : paths) code.push_back(index_code(along(layout, path), variables, style));
  return code;
}

}  // namespace tilewright::layout
