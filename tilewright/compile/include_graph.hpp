// The device headers that a source includes, directly or through other headers.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/hash.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

/// The #include directives among a set of headers. A compile is given exactly the headers that included_by() returns,
/// so that its result cannot depend on a header that digest_of_included() does not cover. Thread-safe.
///
/// Directives are found without preprocessing, so one in a comment or in a disabled block counts too. Names that are
/// not in the set, such as those of system headers, are ignored. If the headers of a text cannot be known without
/// preprocessing, because it has `#include MACRO` or `__has_include`, it counts as including the whole set.
class IncludeGraph {
 public:
  /// @pre headers are sorted by name, and their texts outlive the graph
  explicit IncludeGraph(std::span<const Header> headers);

  /// The graph of device_headers(), built at the first call.
  static const IncludeGraph& of_device_headers();

  /// The headers that compiling `source` may read, sorted by name: those reachable from its text or from one of its own
  /// headers. Empty unless the source is CUDA C++.
  std::vector<Header> included_by(const Source& source) const;

  /// Digest of the names and texts of included_by(source). Each different set of headers is hashed once.
  Digest digest_of_included(const Source& source) const;

 private:
  /// Direct includes of one text, as indices into headers_.
  struct Includes {
    std::vector<std::size_t> indices;
    bool needs_all = false;  // only a preprocessor could tell
  };
  Includes includes_of(std::string_view name, std::string_view text) const;
  void append(std::vector<std::size_t>& indices, std::string_view name) const;
  std::vector<std::size_t> reachable_from(const Source& source) const;

  std::vector<Header> headers_;
  std::vector<Includes> includes_;  // parallel to headers_

  mutable ForkSafeMutex mutex_;                                      // guards digests_
  mutable std::map<std::vector<std::size_t>, Digest> digests_ = {};  // by the indices of the included headers
};

}  // namespace tilewright::compile
