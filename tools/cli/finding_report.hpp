// Findings of `tilewright emulate` as text and as JSON, and the file that suppresses some.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/engine/kernel_file.hpp"

namespace tilewright::cli {

/// The lines of the kernel's file and of its headers.
class SourceExcerpts {
 public:
  explicit SourceExcerpts(const engine::KernelFile& kernel) : kernel_(&kernel) {}
  /// The lines of the files that a program was compiled from, as they are on disk now.
  SourceExcerpts() = default;

  /// The frame that is reported: the innermost one in the kernel's own file, or outside of the CUDA toolkit's headers
  /// if the kernel's file is not known; else the innermost one of all.
  std::optional<emulator::SourceLine> own_frame(const emulator::CodeLocation& location) const;
  /// The text of a line, without blanks around it; empty if it is not known.
  std::string text_of(const emulator::SourceLine& line) const;

 private:
  const std::string* file_text(const std::string& path) const;

  const engine::KernelFile* kernel_ = nullptr;
  mutable std::map<std::string, std::string> files_;
};

/// A file whose lines are "KIND", "KIND FILE" or "KIND FILE:LINE"; KIND is an identifier such as shared_race, or *.
/// FILE is a path or the last part of one. Empty lines and what follows # do not count.
class Suppressions {
 public:
  Suppressions() = default;
  /// @throws InvalidArgument that names the file and the line
  static Suppressions read(const std::string& path);
  static Suppressions parse(const std::string& text, const std::string& path);

  /// Whether a line matches the finding's kind and one of its frames.
  bool match(const emulator::Finding& finding) const;

 private:
  struct Row {
    std::optional<emulator::FindingKind> kind;
    std::string file;
    int line = 0;
  };
  std::vector<Row> rows_;
};

std::string report_text(const emulator::Finding& finding, const SourceExcerpts& excerpts);
nlohmann::ordered_json report_json(const emulator::Finding& finding, const SourceExcerpts& excerpts);

}  // namespace tilewright::cli
