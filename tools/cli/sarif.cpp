#include "tools/cli/sarif.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

namespace tilewright::cli {
namespace {

using nlohmann::ordered_json;

ordered_json location_json(const emulator::SourceLine& line, const std::string& excerpt) {
  ordered_json region{{"startLine", line.line}};
  if (!excerpt.empty()) region["snippet"] = {{"text", excerpt}};
  return {{"physicalLocation", {{"artifactLocation", {{"uri", line.file}}}, {"region", region}}}};
}

ordered_json result_json(const emulator::Finding& finding, const SourceExcerpts& excerpts) {
  std::string text = finding.detail;
  if (finding.thread) {
    text += ", by thread " + emulator::to_string(finding.thread->thread) + " of CTA " +
            emulator::to_string(finding.thread->cta);
  }
  for (const std::string& note : finding.notes) text += "\n" + note;
  ordered_json result{{"ruleId", emulator::identifier(finding.kind)},
                      {"level", emulator::name(finding.severity)},
                      {"message", {{"text", text}}},
                      {"occurrenceCount", finding.count}};
  const auto own = excerpts.own_frame(finding.location);
  if (!own) return result;
  result["locations"] = ordered_json::array({location_json(*own, excerpts.text_of(*own))});
  ordered_json frames = ordered_json::array();
  for (const emulator::SourceLine& frame : finding.location.source)
    frames.push_back({{"location", location_json(frame, excerpts.text_of(frame))}});
  result["stacks"] = ordered_json::array({{{"frames", frames}}});
  return result;
}

}  // namespace

std::string sarif_text(const std::vector<emulator::Finding>& findings, const SourceExcerpts& excerpts) {
  ordered_json rules = ordered_json::array(), results = ordered_json::array();
  std::set<emulator::FindingKind> kinds;
  for (const emulator::Finding& finding : findings) {
    results.push_back(result_json(finding, excerpts));
    if (!kinds.insert(finding.kind).second) continue;
    ordered_json rule{{"id", emulator::identifier(finding.kind)},
                      {"shortDescription", {{"text", emulator::name(finding.kind)}}}};
    if (!emulator::fix(finding.kind).empty()) rule["help"] = {{"text", emulator::fix(finding.kind)}};
    rules.push_back(rule);
  }
  const ordered_json sarif{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", ordered_json::array({{{"tool", {{"driver", {{"name", "tilewright emulate"}, {"rules", rules}}}}},
                                     {"results", results}}})}};
  return sarif.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string source_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? demangled.get() : symbol;
}

}  // namespace tilewright::cli
