#include "tilewright/cache/database.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPrimaryCode = 0xff;         // mask: the higher bits distinguish extended result codes
constexpr int kOperationsPerCheck = 2000;  // operations of SQLite's virtual machine between checks, about 20 us
constexpr std::int64_t kSmallFileAllowance = std::int64_t{1}
                                             << 20;  // beyond what the file holds; small tables need no count
constexpr std::int64_t kTextExpansion = 4;  // a number that is read as text has more bytes than the file has for it

// Our statements and tables stay far below these limits: https://www.sqlite.org/limits.html
constexpr std::array<std::pair<int, int>, 9> kLimits{{{SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
                                                      {SQLITE_LIMIT_COLUMN, 64},
                                                      {SQLITE_LIMIT_EXPR_DEPTH, 32},
                                                      {SQLITE_LIMIT_COMPOUND_SELECT, 4},
                                                      {SQLITE_LIMIT_VDBE_OP, 20000},
                                                      {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                                      {SQLITE_LIMIT_ATTACHED, 0},
                                                      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                                      {SQLITE_LIMIT_WORKER_THREADS, 0}}};

// Whether `sql` contains `word`, given in capitals, as a whole word in any case.
bool has_word(std::string_view sql, std::string_view word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = 0; i + word.size() <= sql.size(); ++i) {
    const bool is_same = std::equal(word.begin(), word.end(), sql.begin() + static_cast<std::ptrdiff_t>(i),
                                    [](char x, char y) { return x == std::toupper(static_cast<unsigned char>(y)); });
    const std::size_t end = i + word.size();
    if (is_same && (i == 0 || !is_part(sql[i - 1])) && (end == sql.size() || !is_part(sql[end]))) return true;
  }
  return false;
}

// Whether an entry of sqlite_master is a table without computed columns and CHECK constraints. The text of automatic
// indexes is empty.
bool is_plain_table(std::string_view sql) {
  return sql.empty() || (sql.starts_with("CREATE TABLE ") && !has_word(sql, "AS") && !has_word(sql, "CHECK"));
}

// SQLite would block on a FIFO. Uses stat() without opening the file, because close() drops all locks that the process
// has on a file.
void check_regular(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw DatabaseError(SQLITE_CANTOPEN, fmt::format("{} is not a regular file", path));
}

std::int64_t file_size(sqlite3* database) {
  sqlite3_file* file = nullptr;
  sqlite3_int64 size = 0;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  const bool is_known =
      file != nullptr && file->pMethods != nullptr && file->pMethods->xFileSize(file, &size) == SQLITE_OK;
  return is_known ? size : 0;
}

}  // namespace

// The state of SQLite's callbacks: the time limit of the current call, and why a callback ended it.
struct DatabaseGuard {
  DatabaseLimits limits;
  Clock::time_point deadline{};
  Clock::time_point busy_since{};
  std::exception_ptr thrown;  // by check_interruption(): exceptions must not pass through SQLite's C frames
  bool timed_out = false;
  std::int64_t max_bytes_read = 0;  // limit of Statement::bytes_read_

  void begin_call() {
    deadline = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.step_timeout_s));
    timed_out = false;
  }
  bool is_interrupted() {
    try {
      check_interruption();
      return false;
    } catch (...) {
      thrown = std::current_exception();
      return true;
    }
  }

  // A result other than 0 makes the statement end with SQLITE_INTERRUPT.
  static int on_progress(void* self) {
    auto& guard = *static_cast<DatabaseGuard*>(self);
    guard.timed_out = Clock::now() > guard.deadline;
    return guard.timed_out || guard.is_interrupted() ? 1 : 0;
  }

  // Returns 0 to give up and 1 to try again; `tries` attempts to get this lock have failed before.
  static int on_busy(void* self, int tries) {
    auto& guard = *static_cast<DatabaseGuard*>(self);
    if (tries == 0) guard.busy_since = Clock::now();
    if (guard.is_interrupted()) return 0;
    const auto left = guard.busy_since + std::chrono::milliseconds(guard.limits.busy_timeout_ms) - Clock::now();
    if (left <= Clock::duration::zero()) return 0;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(std::min(1 + tries, 20))));
    return 1;
  }
};

bool DatabaseError::is_damage() const { return code_ == SQLITE_CORRUPT || code_ == SQLITE_NOTADB; }

Statement::Statement(DatabaseGuard& guard, sqlite3* database, const char* sql) : guard_(&guard), database_(database) {
  sqlite3_stmt* statement = nullptr;
  guard_->begin_call();
  check(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), sql);
  statement_.reset(statement);
}

void Statement::bind(int index, std::span<const std::byte> blob) {
  guard_->max_bytes_read += static_cast<std::int64_t>(blob.size());
  check(sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_STATIC), "bind");
}

void Statement::bind(int index, const std::string& text) {
  guard_->max_bytes_read += static_cast<std::int64_t>(text.size());
  check(sqlite3_bind_text(statement_.get(), index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC), "bind");
}

void Statement::bind(int index, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), index, value), "bind");
}

void Statement::bind(int index, double value) { check(sqlite3_bind_double(statement_.get(), index, value), "bind"); }

bool Statement::step() {
  guard_->begin_call();
  const int result = sqlite3_step(statement_.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) check(result, "step");
  if (result == SQLITE_ROW) count_bytes_read(1);
  return result == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  bytes_read_ = 0;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  count_bytes_read(size);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

std::span<const std::byte> Statement::blob(int column) {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  count_bytes_read(size);
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : size};
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::check(int result, const char* what) const {
  if (result == SQLITE_OK) return;
  if (guard_->thrown) std::rethrow_exception(std::exchange(guard_->thrown, nullptr));
  if (guard_->timed_out) {
    throw DatabaseError(SQLITE_INTERRUPT, fmt::format("SQLite, {}: exceeded the time limit of {} s", what,
                                                      guard_->limits.step_timeout_s));
  }
  throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite, {}: {}", what, sqlite3_errmsg(database_)));
}

void Statement::count_bytes_read(std::size_t bytes) {
  bytes_read_ += static_cast<std::int64_t>(bytes);
  if (bytes_read_ <= guard_->max_bytes_read) return;
  throw DatabaseError(SQLITE_CORRUPT, "SQLite, step: the rows have more bytes than the file, so they share pages");
}

Database::Database(const std::string& path, int flags, const DatabaseLimits& limits)
    : guard_(std::make_unique<DatabaseGuard>()) {
  guard_->limits = limits;
  const bool is_uri = (flags & SQLITE_OPEN_URI) != 0;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    if (!is_uri) check_regular(path + suffix);
  }
  // The prefix keeps SQLite from interpreting names such as ":memory:".
  const std::string name = is_uri || path.starts_with('/') ? path : "./" + path;
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(name.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (result != SQLITE_OK) {
    throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite cannot open {}: {}", path, sqlite3_errstr(result)));
  }
  guard_->max_bytes_read = kSmallFileAllowance + kTextExpansion * file_size(database);
  configure();
  check_schema();
}

Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

// The settings that https://www.sqlite.org/security.html recommends for untrusted files.
void Database::configure() const {
  sqlite3* database = database_.get();
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0}}) {
    sqlite3_db_config(database, option, value, nullptr);
  }
  for (const auto& [limit, value] : kLimits) sqlite3_limit(database, limit, value);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, guard_->limits.max_value_bytes);
  sqlite3_busy_handler(database, &DatabaseGuard::on_busy, guard_.get());
  sqlite3_progress_handler(database, kOperationsPerCheck, &DatabaseGuard::on_progress, guard_.get());
  run("PRAGMA cell_size_check = ON");
}

void Database::check_schema() const {
  Statement rows = prepare("SELECT sql FROM sqlite_master");
  while (rows.step()) {
    const std::string sql = rows.text(0);
    if (is_plain_table(sql)) continue;
    throw DatabaseError(
        SQLITE_AUTH, fmt::format("it is not used because its schema has more than plain tables: {}", printable(sql)));
  }
}

Statement Database::prepare(const char* sql) const { return {*guard_, database_.get(), sql}; }

std::int64_t Database::integer(const char* sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::changes() const { return sqlite3_changes(database_.get()); }

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

}  // namespace tilewright::cache
