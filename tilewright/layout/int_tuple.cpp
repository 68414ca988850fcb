// Construction and structure of IntTuples.
#include "tilewright/layout/int_tuple.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

using Modes = std::vector<IntTuple>;

/// The modes; a leaf counts as one mode.
Modes modes_of(const IntTuple& t) {
  Modes modes;
  modes.reserve(static_cast<std::size_t>(t.rank()) + 1);
  for (int i = 0; i < t.rank(); ++i) modes.push_back(t[i]);
  return modes;
}

void require_range(const char* verb, const IntTuple& t, int begin, int end) {
  if (begin < 0 || begin >= end || end > t.rank())
    throw InvalidArgument(
        fmt::format("{} of modes [{},{}) of {}, which has {}", verb, begin, end, to_string(t), t.rank()));
}

void require_room(const char* verb, const IntTuple& t, int rank) {
  if (t.rank() > rank)
    throw InvalidArgument(fmt::format("{} to rank {} of {}, which has {} modes", verb, rank, to_string(t), t.rank()));
}

template <class Predicate>
bool any_leaf(const IntTuple& t, Predicate&& predicate) {
  if (t.is_leaf()) return predicate(t);
  for (int i = 0; i < t.rank(); ++i) {
    if (any_leaf(t[i], predicate)) return true;
  }
  return false;
}

void collect(const IntTuple& t, Modes& out) {
  (void)any_leaf(t, [&](const IntTuple& leaf) {
    out.push_back(leaf);
    return false;
  });
}

/// The profile filled with the leaves of `flat` from `at` on.
IntTuple filled(const IntTuple& flat, const IntTuple& profile, int& at) {
  return transform_leaves(profile, [&](const IntTuple&) { return flat[at++]; });
}

}  // namespace

IntTuple IntTuple::tuple(std::vector<IntTuple> modes) {
  IntTuple result;
  std::construct_at(&result.modes_, std::move(modes));
  result.kind_ = Kind::tuple;
  return result;
}

IntTuple IntTuple::tuple(const std::vector<std::int64_t>& leaves) {
  return tuple(std::vector<IntTuple>(leaves.begin(), leaves.end()));
}

IntTuple IntTuple::tuple(const std::vector<Number>& leaves) {
  return tuple(std::vector<IntTuple>(leaves.begin(), leaves.end()));
}

IntTuple IntTuple::scaled_basis(const Number& value, Basis basis) {
  IntTuple result(value);
  result.leaf_.basis = basis;
  return result;
}

void IntTuple::refuse_value() const {
  if (kind_ == Kind::scalar && !leaf_.number.is_static())
    throw InvalidArgument(
        fmt::format("{} is known only at run time where a static integer is needed", to_string(*this)));
  const char* what = is_underscore() ? "a whole mode" : is_leaf() ? "a scaled basis element" : "a tuple";
  throw InvalidArgument(fmt::format("{} is {} where an integer is needed", to_string(*this), what));
}

void IntTuple::refuse_mode(int i) const {
  throw InvalidArgument(fmt::format("mode {} of {}, of rank {}", i, to_string(*this), rank()));
}

int depth(const IntTuple& t) {
  if (t.is_leaf()) return 0;
  int deepest = 0;
  for (int i = 0; i < t.rank(); ++i) deepest = std::max(deepest, depth(t[i]));
  return deepest + 1;
}

std::vector<std::int64_t> leaves(const IntTuple& t) {
  std::vector<std::int64_t> result;
  (void)any_leaf(t, [&](const IntTuple& leaf) {
    result.push_back(leaf.value());
    return false;
  });
  return result;
}

std::vector<Number> numbers_of(const IntTuple& t) {
  std::vector<Number> result;
  (void)any_leaf(t, [&](const IntTuple& leaf) {
    result.push_back(leaf.number());
    return false;
  });
  return result;
}

bool is_static(const IntTuple& t) {
  return !any_leaf(t, [](const IntTuple& leaf) { return !leaf.is_underscore() && !leaf.basis_number().is_static(); });
}

IntTuple evaluate(const IntTuple& t, const Bindings& bindings) {
  return transform_leaves(t, [&](const IntTuple& leaf) {
    return leaf.is_underscore() ? leaf : IntTuple::scaled_basis(evaluate(leaf.basis_number(), bindings), leaf.basis());
  });
}

const IntTuple& get(const IntTuple& t, const Basis& path) {
  const IntTuple* mode = &t;
  for (const int i : path) mode = &(*mode)[i];
  return *mode;
}

IntTuple flatten(const IntTuple& t) {
  if (t.is_leaf()) return t;
  Modes result;
  collect(t, result);
  return IntTuple::tuple(std::move(result));
}

IntTuple unflatten(const IntTuple& flat, const IntTuple& profile) {
  const IntTuple source = flatten(flat);
  const int wanted = flatten(profile).rank();
  if (source.rank() != wanted)
    throw InvalidArgument(fmt::format("unflatten of {} into {}: {} leaves, the profile has {}", to_string(flat),
                                      to_string(profile), source.rank(), wanted));
  int at = 0;
  return filled(source, profile, at);
}

IntTuple take(const IntTuple& t, int begin, int end) {
  require_range("take", t, begin, end);
  Modes modes;
  for (int i = begin; i < end; ++i) modes.push_back(t[i]);
  return IntTuple::tuple(std::move(modes));
}

IntTuple select(const IntTuple& t, const std::vector<int>& modes) {
  Modes result;
  for (const int i : modes) result.push_back(t[i]);
  return IntTuple::tuple(std::move(result));
}

IntTuple append(const IntTuple& t, const IntTuple& x) {
  Modes modes = modes_of(t);
  modes.push_back(x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple prepend(const IntTuple& t, const IntTuple& x) {
  Modes modes = modes_of(t);
  modes.insert(modes.begin(), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple append(const IntTuple& t, int rank, const IntTuple& x) {
  require_room("append", t, rank);
  if (t.rank() == rank) return t;
  Modes modes = modes_of(t);
  modes.resize(static_cast<std::size_t>(rank), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple prepend(const IntTuple& t, int rank, const IntTuple& x) {
  require_room("prepend", t, rank);
  if (t.rank() == rank) return t;
  Modes modes = modes_of(t);
  modes.insert(modes.begin(), static_cast<std::size_t>(rank - t.rank()), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple replace(const IntTuple& t, int i, const IntTuple& x) {
  (void)t[i];  // refuses a mode that is not there
  return transform_modes(t, [&](const IntTuple& mode, int at) { return at == i ? x : mode; });
}

IntTuple group(const IntTuple& t, int begin, int end) {
  require_range("group", t, begin, end);
  Modes modes = modes_of(t);
  IntTuple grouped = take(t, begin, end);
  modes.erase(modes.begin() + begin, modes.begin() + end);
  modes.insert(modes.begin() + begin, std::move(grouped));
  return IntTuple::tuple(std::move(modes));
}

IntTuple reverse(const IntTuple& t) {
  return transform_modes(t, [&](const IntTuple&, int i) { return t[t.rank() - 1 - i]; });
}

bool has_underscore(const IntTuple& t) {
  return any_leaf(t, [](const IntTuple& leaf) { return leaf.is_underscore(); });
}

bool has_basis(const IntTuple& t) {
  return any_leaf(t, [](const IntTuple& leaf) { return !leaf.basis().empty(); });
}

std::string to_string(const IntTuple& t) {
  if (t.is_underscore()) return "_";
  if (t.is_leaf()) return to_string(t.basis_number()) + to_string(t.basis());
  std::string text = "(";
  for (int i = 0; i < t.rank(); ++i) {
    if (i > 0) text += ',';
    text += to_string(t[i]);
  }
  return text + ')';
}

}  // namespace tilewright::layout
