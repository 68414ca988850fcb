#include "tools/cuda_runtime/run_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tilewright/base/error.hpp"

namespace tilewright::cuda_runtime {
namespace {

using nlohmann::json;

json index_json(const runtime::Dim3& index) { return json{index.x, index.y, index.z}; }
runtime::Dim3 index_of(const json& value) { return {value.at(0), value.at(1), value.at(2)}; }

json finding_json(const KernelFinding& found) {
  const emulator::Finding& finding = found.finding;
  json frames = json::array();
  for (const emulator::SourceLine& frame : finding.location.source) frames.push_back({frame.file, frame.line});
  json value{{"kernel", found.kernel},
             {"kind", emulator::identifier(finding.kind)},
             {"warning", finding.severity == emulator::Severity::warning},
             {"detail", finding.detail},
             {"address", finding.address},
             {"notes", finding.notes},
             {"count", finding.count},
             {"fatal", finding.is_fatal},
             {"ptx_line", finding.location.ptx_line},
             {"ptx", finding.location.ptx_text},
             {"frames", frames}};
  if (finding.thread) {
    value["cta"] = index_json(finding.thread->cta);
    value["thread"] = index_json(finding.thread->thread);
  }
  return value;
}

KernelFinding finding_of(const json& value) {
  KernelFinding found;
  found.kernel = value.at("kernel");
  emulator::Finding& finding = found.finding;
  const auto kind = emulator::parse_finding_kind(value.at("kind").get<std::string>());
  if (!kind) throw InvalidArgument("a report of the emulated CUDA libraries has an unknown kind of finding");
  finding.kind = *kind;
  finding.severity = value.at("warning").get<bool>() ? emulator::Severity::warning : emulator::Severity::error;
  finding.detail = value.at("detail");
  finding.address = value.at("address");
  finding.notes = value.at("notes").get<std::vector<std::string>>();
  finding.count = value.at("count");
  finding.is_fatal = value.at("fatal");
  finding.location.ptx_line = value.at("ptx_line");
  finding.location.ptx_text = value.at("ptx");
  for (const json& frame : value.at("frames")) finding.location.source.push_back({frame.at(0), frame.at(1)});
  if (value.contains("thread")) {
    finding.thread = emulator::ThreadLocation{index_of(value.at("cta")), index_of(value.at("thread"))};
  }
  return found;
}

std::string dump(const json& value) { return value.dump(1, ' ', false, json::error_handler_t::replace); }

template <class F>
auto parse(const std::string& text, F&& read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    throw InvalidArgument(fmt::format("the emulated CUDA libraries and the command disagree: {}", error.what()));
  }
}

}  // namespace

std::string to_json(const Settings& settings) {
  return json{{"report_folder", settings.report_folder},
              {"target", settings.target},
              {"steps", settings.steps_per_cta},
              {"memory", settings.memory_bytes},
              {"multiprocessors", settings.multiprocessors},
              {"threads", settings.threads},
              {"check_global", settings.check_global},
              {"cooperative", settings.cooperative},
              {"skips_repeats", settings.skips_repeats}}
      .dump();
}

Settings parse_settings(const std::string& text) {
  return parse(text, [](const json& value) {
    Settings settings;
    settings.report_folder = value.at("report_folder");
    settings.target = value.at("target");
    settings.steps_per_cta = value.at("steps");
    settings.memory_bytes = value.at("memory");
    settings.multiprocessors = value.at("multiprocessors");
    settings.threads = value.at("threads");
    settings.check_global = value.at("check_global");
    settings.cooperative = value.at("cooperative");
    settings.skips_repeats = value.at("skips_repeats");
    return settings;
  });
}

void RunReport::add(const std::string& kernel, emulator::Finding finding) {
  const auto same = std::ranges::find_if(findings, [&](const KernelFinding& other) {
    return other.kernel == kernel && other.finding.kind == finding.kind && other.finding.severity == finding.severity &&
           other.finding.location == finding.location;
  });
  if (same == findings.end()) {
    findings.push_back({kernel, std::move(finding)});
  } else {
    same->finding.count += finding.count;
  }
}

void RunReport::merge(const RunReport& other) {
  if (program.empty()) program = other.program;
  for (const KernelFinding& each : other.findings) add(each.kernel, each.finding);
  for (const auto& [function, calls] : other.unsupported) unsupported[function] += calls;
  for (const std::string& note : other.notes) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  }
  launches += other.launches;
  skipped += other.skipped;
  seconds += other.seconds;
  timed |= other.timed;
}

std::string to_json(const RunReport& report) {
  json findings = json::array();
  for (const KernelFinding& each : report.findings) findings.push_back(finding_json(each));
  return dump(json{{"program", report.program},
                   {"findings", findings},
                   {"unsupported", report.unsupported},
                   {"notes", report.notes},
                   {"launches", report.launches},
                   {"skipped", report.skipped},
                   {"seconds", report.seconds},
                   {"timed", report.timed}});
}

RunReport parse_report(const std::string& text) {
  return parse(text, [](const json& value) {
    RunReport report;
    report.program = value.at("program");
    for (const json& each : value.at("findings")) report.findings.push_back(finding_of(each));
    report.unsupported = value.at("unsupported").get<std::map<std::string, std::uint64_t>>();
    report.notes = value.at("notes").get<std::vector<std::string>>();
    report.launches = value.at("launches");
    report.skipped = value.at("skipped");
    report.seconds = value.at("seconds");
    report.timed = value.at("timed");
    return report;
  });
}

}  // namespace tilewright::cuda_runtime
