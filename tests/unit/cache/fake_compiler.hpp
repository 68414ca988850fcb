// A compiler for tests of the cache. It counts its runs in a file, so that the runs of several processes are counted.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <string>
#include <thread>

#include "tilewright/base/error.hpp"
#include "tilewright/cache/entry.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

class FakeCompiler : public compile::Compiler {
 public:
  /// Each compile takes `duration` and, unless `log_path` is empty, appends a byte to that file.
  explicit FakeCompiler(std::string log_path, std::chrono::milliseconds duration = {})
      : log_path_(std::move(log_path)), duration_(duration) {}

  const std::string& identity() const override { return identity_; }

  compile::Artifact compile(const compile::Source& source) const override {
    if (!log_path_.empty()) {
      const compile::UniqueFd log(::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
      compile::write_all(log.get(), "x", log_path_);
    }
    std::this_thread::sleep_for(duration_);
    if (source.text == "broken") throw CompileError("cannot compile 'broken'");
    compile::Artifact artifact;
    artifact.name = source.name;
    artifact.symbol = source.symbol;
    artifact.target = source.target;
    artifact.cubin.assign(payload_bytes, std::byte{0x5a});
    artifact.ptx = "// compiled from " + source.text;
    artifact.compiler = identity_;
    artifact.compile_ms = 12.5;
    artifact.description = source.description;
    artifact.source = compile::source_digest(source).hex();
    return artifact;
  }

  /// Number of compiles by all processes that share the log.
  std::size_t runs() const {
    const compile::UniqueFd log(::open(log_path_.c_str(), O_RDONLY | O_CLOEXEC));
    return log ? compile::read_file(log_path_, std::size_t{1} << 20).size() : 0;
  }

  std::size_t payload_bytes = 1000;

 private:
  std::string identity_ = "fake 1";
  std::string log_path_;
  std::chrono::milliseconds duration_;
};

/// Path of the entry of a key in the cache at `root`.
inline std::string entry_path(const std::string& root, const Key& key) {
  const EntryName name = entry_name(key);
  return root + "/entries/" + name.folder + "/" + name.file;
}

inline compile::Source source_named(const std::string& name) {
  compile::Source source;
  source.name = name;
  source.symbol = "kernel";
  source.text = "text of " + name;
  source.target = kSm90a;
  return source;
}

}  // namespace tilewright::cache
