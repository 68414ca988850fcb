// The parameter struct of a kernel, described once: a function lists the fields in order to a sink. A ParameterWriter
// writes their values into a launch; a ParameterRecorder notes where each field lies, which the emitted text asserts
// of the struct that the kernel declares.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::plan {

/// A field that is no struct itself: "epilogue.bias_.stride_m", bytes from the beginning of the outermost struct.
struct ParameterField {
  std::string name;
  std::size_t offset = 0;
  bool operator==(const ParameterField&) const = default;
};

struct ParameterLayout {
  std::vector<ParameterField> fields;
  std::size_t size = 0;
};

/// What a field is called in emitted code: as it is, or, for the label of an epilogue's scalar or tensor, with an
/// underscore behind it. No keyword and no name of ours ends in one.
struct ParameterName {
  ParameterName(const char* name) : text(name) {}  // NOLINT: a name is a name
  explicit ParameterName(std::string_view name, bool label = false) : text(name), is_label(label) {}

  std::string emitted() const { return is_label ? std::string(text) + "_" : std::string(text); }

  std::string_view text;
  bool is_label = false;
};
inline ParameterName label_name(std::string_view label) { return ParameterName(label, true); }

/// A sink that appends the values to a launch.
class ParameterWriter {
 public:
  explicit ParameterWriter(Launch& launch) : launch_(launch) {}

  /// The fields until end() are those of one nested struct.
  void begin(const ParameterName& /*name*/) {}
  /// `alignment` is the nested struct's, in bytes.
  void end(std::size_t alignment) { launch_.finish(alignment); }
  /// `value` is called only by a sink that needs the value.
  template <class Value>
  void field(const ParameterName& /*name*/, const Value& value) {
    launch_.append(value());
  }
  /// The address of the launch's workspace, of `bytes()` bytes.
  template <class Bytes>
  void workspace(const ParameterName& /*name*/, const Bytes& bytes) {
    launch_.append_workspace(bytes());
  }
  /// The byte that an empty struct has.
  void empty() { launch_.append(std::byte{0}); }
  /// Ends the outermost struct.
  void finish() { launch_.finish(launch_.tensor_maps().empty() ? 8 : kTensorMapAlignment); }

 private:
  Launch& launch_;
};

/// A sink that calls no function for a value.
class ParameterRecorder {
 public:
  void begin(const ParameterName& name) { scopes_.push_back(qualified(name) + "."); }
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
  std::vector<std::string> scopes_;  // of the nested structs that are open, each with the names around it
  std::vector<ParameterField> fields_;
};

/// The fields of Epilogue::Parameters as lower/cuda/epilogue declares them: the values of the scalars, in the compute
/// type, then the tensors, seen transposed where the problem is computed so. `arguments` may be null for a sink that
/// asks for no values.
void describe_epilogue(ParameterWriter& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed);
void describe_epilogue(ParameterRecorder& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed);

}  // namespace tilewright::plan
