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

constexpr int kPrimaryCode = 0xff;                          // extended result codes carry more in the higher bits
constexpr int kOperationsPerCheck = 2000;                   // of SQLite's virtual machine: some 20 us
constexpr std::int64_t kAllowance = std::int64_t{1} << 20;  // beyond what the file holds; small tables need no count
constexpr std::int64_t kGrowth = 4;  // a number that is read as text has more bytes than the file has for it

// https://www.sqlite.org/limits.html. Our statements and tables are far below.
constexpr std::array<std::pair<int, int>, 9> kLimits{{{SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
                                                      {SQLITE_LIMIT_COLUMN, 64},
                                                      {SQLITE_LIMIT_EXPR_DEPTH, 32},
                                                      {SQLITE_LIMIT_COMPOUND_SELECT, 4},
                                                      {SQLITE_LIMIT_VDBE_OP, 20000},
                                                      {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                                      {SQLITE_LIMIT_ATTACHED, 0},
                                                      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                                      {SQLITE_LIMIT_WORKER_THREADS, 0}}};

// Whether `word`, of capitals, is a word of an SQL text.
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

// A table whose columns are neither computed nor checked by expressions, as SQLite writes it down. Indexes that a table
// brings with it have no text.
bool is_plain_table(std::string_view sql) {
  return sql.empty() || (sql.starts_with("CREATE TABLE ") && !has_word(sql, "AS") && !has_word(sql, "CHECK"));
}

// SQLite would wait for the writer of a FIFO. It is never opened here: closing a file drops the process's locks on it.
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

// What calls of SQLite share: when they must end, and why they did.
struct DatabaseGuard {
  DatabaseLimits limits;
  Clock::time_point deadline{};
  Clock::time_point busy_since{};
  std::exception_ptr thrown;  // by the thread's interrupt check, below frames of C
  bool is_late = false;
  std::int64_t deliverable = 0;  // bytes that a statement may give

  void begin_call() {
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.step_s));
    is_late = false;
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

  // Other than 0: the statement ends with SQLITE_INTERRUPT.
  static int on_progress(void* self) {
    auto& guard = *static_cast<DatabaseGuard*>(self);
    guard.is_late = Clock::now() > guard.deadline;
    return guard.is_late || guard.is_interrupted() ? 1 : 0;
  }

  // 0: the lock is given up. `tries` for this lock have failed before.
  static int on_busy(void* self, int tries) {
    auto& guard = *static_cast<DatabaseGuard*>(self);
    if (tries == 0) guard.busy_since = Clock::now();
    if (guard.is_interrupted()) return 0;
    const auto left = guard.busy_since + std::chrono::milliseconds(guard.limits.busy_ms) - Clock::now();
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
  guard_->deliverable += static_cast<std::int64_t>(blob.size());
  check(sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_STATIC), "bind");
}

void Statement::bind(int index, const std::string& text) {
  guard_->deliverable += static_cast<std::int64_t>(text.size());
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
  if (result == SQLITE_ROW) deliver(1);
  return result == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  delivered_ = 0;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  deliver(size);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

std::span<const std::byte> Statement::blob(int column) {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  deliver(size);
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : size};
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::check(int result, const char* what) const {
  if (result == SQLITE_OK) return;
  if (guard_->thrown) std::rethrow_exception(std::exchange(guard_->thrown, nullptr));
  if (guard_->is_late) {
    throw DatabaseError(SQLITE_INTERRUPT, fmt::format("SQLite, {}: not done after {} s, which no table of ours takes",
                                                      what, guard_->limits.step_s));
  }
  throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite, {}: {}", what, sqlite3_errmsg(database_)));
}

void Statement::deliver(std::size_t bytes) {
  delivered_ += static_cast<std::int64_t>(bytes);
  if (delivered_ <= guard_->deliverable) return;
  throw DatabaseError(SQLITE_CORRUPT, "SQLite, step: the tables have more than the file can hold: pages are shared");
}

Database::Database(const std::string& path, int flags, const DatabaseLimits& limits)
    : guard_(std::make_unique<DatabaseGuard>()) {
  guard_->limits = limits;
  const bool is_uri = (flags & SQLITE_OPEN_URI) != 0;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    if (!is_uri) check_regular(path + suffix);
  }
  // Else a name such as ":memory:" would not be a file's.
  const std::string name = is_uri || path.starts_with('/') ? path : "./" + path;
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(name.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (result != SQLITE_OK) {
    throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite cannot open {}: {}", path, sqlite3_errstr(result)));
  }
  guard_->deliverable = kAllowance + kGrowth * file_size(database);
  configure();
  check_schema();
}

Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

// https://www.sqlite.org/security.html
void Database::configure() const {
  sqlite3* database = database_.get();
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0}}) {
    sqlite3_db_config(database, option, value, nullptr);
  }
  for (const auto& [limit, value] : kLimits) sqlite3_limit(database, limit, value);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, guard_->limits.value_bytes);
  sqlite3_busy_handler(database, &DatabaseGuard::on_busy, guard_.get());
  sqlite3_progress_handler(database, kOperationsPerCheck, &DatabaseGuard::on_progress, guard_.get());
  run("PRAGMA cell_size_check = ON");
}

void Database::check_schema() const {
  Statement rows = prepare("SELECT sql FROM sqlite_master");
  while (rows.step()) {
    const std::string sql = rows.text(0);
    if (is_plain_table(sql)) continue;
    throw DatabaseError(SQLITE_AUTH, fmt::format("it is not used: it has more than plain tables: {}", printable(sql)));
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
