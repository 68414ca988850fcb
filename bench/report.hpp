// What a run found: a table to read and JSON to keep.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "problem.hpp"
#include "telemetry.hpp"
#include "verify.hpp"

namespace tilewright::bench {

/// What the figures were measured on and how: without it they mean nothing.
struct Setting {
  std::string date;  // UTC, ISO 8601
  std::string command;
  std::string gpu;
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::string kernel_driver;  // "580.159.04"
  std::string cuda_driver;    // CUDA version that the driver supports
  std::string cublaslt;       // version and path; empty when it was not there
  std::string compiler;       // ours
};

struct Row {
  std::string contender;
  std::string detail;
  Verdict verdict;
  Timing timing;  // empty when the result was wrong
};

struct ProblemReport {
  Problem problem;
  int operand_sets = 0;
  std::vector<Row> rows;
  std::vector<std::string> notes;  // who was not there, and why
  std::string failure;             // why the problem was given up; empty when it was not
  Telemetry telemetry;
};

/// 10^12 operations a second.
double tera_ops(const Problem& problem, double microseconds);

/// The timing of the first row called `contender` that was right, or null.
const Timing* find_timing(const ProblemReport& report, const std::string& contender);

void print_setting(const Setting& setting);
void print_problem(const ProblemReport& report);

/// @throws Error when the file cannot be written
void write_json(const std::string& path, const Setting& setting, const std::vector<ProblemReport>& reports);

}  // namespace tilewright::bench
