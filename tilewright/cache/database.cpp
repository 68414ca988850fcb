#include "tilewright/cache/database.hpp"

#include <sqlite3.h>

namespace tilewright::cache {
namespace {

constexpr int kMaxBlobBytes = 256 << 20;  // as an entry of the cache
constexpr int kPrimaryCode = 0xff;        // extended result codes carry more in the higher bits

}  // namespace

bool DatabaseError::is_damage() const { return code_ == SQLITE_CORRUPT || code_ == SQLITE_NOTADB; }

Statement::Statement(sqlite3* database, const char* sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), sql);
  statement_.reset(statement);
}

void Statement::bind(int index, std::span<const std::byte> blob) {
  check(sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_STATIC), "bind");
}

void Statement::bind(int index, const std::string& text) {
  check(sqlite3_bind_text(statement_.get(), index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC), "bind");
}

void Statement::bind(int index, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), index, value), "bind");
}

void Statement::bind(int index, double value) { check(sqlite3_bind_double(statement_.get(), index, value), "bind"); }

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) check(result, "step");
  return result == SQLITE_ROW;
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

std::span<const std::byte> Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : size};
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::check(int result, const char* what) const {
  if (result == SQLITE_OK) return;
  throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite, {}: {}", what, sqlite3_errmsg(database_)));
}

Database::Database(const std::string& path, int flags, int busy_ms) {
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (result != SQLITE_OK) {
    throw DatabaseError(result & kPrimaryCode, fmt::format("SQLite cannot open {}: {}", path, sqlite3_errstr(result)));
  }
  // The file may be hostile: its schema gets no functions, and no field exceeds what an entry may have.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMaxBlobBytes);
  sqlite3_busy_timeout(database, busy_ms);
}

std::int64_t Database::integer(const char* sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::changes() const { return sqlite3_changes(database_.get()); }

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

}  // namespace tilewright::cache
