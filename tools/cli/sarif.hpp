// Findings as SARIF 2.1.0, the format that code hosts and editors show.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/finding_report.hpp"

namespace tilewright::cli {

std::string sarif_text(const std::vector<emulator::Finding>& findings, const SourceExcerpts& excerpts);
/// The demangled name of a symbol, with the types of its parameters.
std::string source_name(const std::string& symbol);

}  // namespace tilewright::cli
