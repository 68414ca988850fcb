// The parameter struct of a kernel is described once, by a function that lists the fields in order to a sink. A
// ParameterWriter writes the values into a launch. A ParameterRecorder records the offset of each field, and the
// emitted CUDA code contains static assertions that the kernel's struct has the same offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::plan {

/// A field that is not a struct itself, for example "epilogue.bias_.stride_m". The offset counts bytes from the
/// beginning of the outermost struct.
struct ParameterField {
  std::string name;
  std::size_t offset = 0;
  bool operator==(const ParameterField&) const = default;
};

struct ParameterLayout {
  std::vector<ParameterField> fields;
  std::size_t size = 0;
};

/// The name of a field in the emitted code. The label of an epilogue's scalar or tensor gets a trailing underscore,
/// which keeps it apart from keywords and from the project's own names.
struct ParameterName {
  ParameterName(const char* name) : text(name) {}  // NOLINT: the implicit conversion lets callers pass a literal
  explicit ParameterName(std::string_view name, bool label = false) : text(name), is_label(label) {}

  std::string emitted() const { return is_label ? std::string(text) + "_" : std::string(text); }

  std::string_view text;
  bool is_label = false;
};
inline ParameterName label_name(std::string_view label) { return ParameterName(label, true); }

/// A sink that appends the values of the fields to a launch.
class ParameterWriter {
 public:
  explicit ParameterWriter(Launch& launch) : launch_(launch) {}

  /// Begins a nested struct, whose fields follow until end(). Its `alignment` in bytes is needed only where a later
  /// field has a larger alignment than the first one.
  void begin(const ParameterName& /*name*/, std::size_t alignment = 1) { launch_.finish(alignment); }
  /// Ends a nested struct whose alignment is `alignment` bytes.
  void end(std::size_t alignment) { launch_.finish(alignment); }
  /// Appends a field. `value` is a function; only a sink that needs the value calls it.
  template <class Value>
  void field(const ParameterName& /*name*/, const Value& value) {
    launch_.append(value());
  }
  /// Appends the address of the launch's workspace, whose size is `bytes()` bytes.
  template <class Bytes>
  void workspace(const ParameterName& /*name*/, const Bytes& bytes) {
    launch_.append_workspace(bytes());
  }
  /// The field is an int32_t; `value` returns any integer that is one.
  template <class Value>
  void int32(const ParameterName& name, const Value& value) {
    field(name, [&] { return static_cast<std::int32_t>(value()); });
  }
  /// Appends the one byte that an empty struct occupies in C++.
  void empty() { launch_.append(std::byte{0}); }
  /// Ends the outermost struct.
  void finish() { launch_.finish(launch_.tensor_maps().empty() ? 8 : kTensorMapAlignment); }

 private:
  Launch& launch_;
};

/// A sink that records the names and offsets of the fields. It does not evaluate their values.
class ParameterRecorder {
 public:
  void begin(const ParameterName& name, std::size_t alignment = 1) {
    scopes_.push_back(qualified(name) + ".");
    writer_.begin(name, alignment);
  }
  void end(std::size_t alignment) {
    scopes_.pop_back();
    writer_.end(alignment);
  }
  template <class Value>
  void field(const ParameterName& name, const Value& /*value*/) {
    writer_.field(name, [] { return std::invoke_result_t<Value>{}; });
    record(name);
  }
  template <class Bytes>
  void workspace(const ParameterName& name, const Bytes& /*bytes*/) {
    writer_.workspace(name, [] { return std::size_t{0}; });
    record(name);
  }
  template <class Value>
  void int32(const ParameterName& name, const Value& value) {
    field(name, [&] { return static_cast<std::int32_t>(value()); });
  }
  void empty() { writer_.empty(); }
  void finish() { writer_.finish(); }

  ParameterLayout take() && { return {std::move(fields_), launch_.parameters().size()}; }

 private:
  std::string qualified(const ParameterName& name) const {
    return (scopes_.empty() ? std::string() : scopes_.back()) + name.emitted();
  }
  void record(const ParameterName& name) { fields_.push_back({qualified(name), launch_.last_offset()}); }

  Launch launch_;
  ParameterWriter writer_{launch_};
  std::vector<std::string> scopes_;  // qualified name prefixes of the nested structs that are open
  std::vector<ParameterField> fields_;
};

/// Describes the fields of Epilogue::Parameters in the order in which lower/cuda/epilogue declares them: first the
/// scalars in the compute type, then the tensors, which are viewed transposed if `is_transposed`. `arguments` may be
/// null for a sink that does not evaluate values.
void describe_epilogue(ParameterWriter& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed);
void describe_epilogue(ParameterRecorder& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed);

}  // namespace tilewright::plan
