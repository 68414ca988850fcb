// A SQLite file that may be damaged or hostile: statements that throw, and nothing in the file that can act.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tilewright/base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tilewright::cache {

/// `code` is SQLite's primary result code.
class DatabaseError : public Error {
 public:
  DatabaseError(int code, const std::string& message) : Error(message), code_(code) {}
  int code() const { return code_; }
  /// The file is no database, or one whose pages do not fit together.
  bool is_damage() const;

 private:
  int code_;
};

class Statement {
 public:
  /// @throws DatabaseError, as every other member that calls SQLite
  Statement(sqlite3* database, const char* sql);

  /// Parameters count from 1. What is bound must live until the step. A null span or text is an empty one.
  void bind(int index, std::span<const std::byte> blob);
  void bind(int index, const std::string& text);
  void bind(int index, std::int64_t value);
  void bind(int index, double value);

  /// True when there is a row.
  bool step();
  void reset();

  /// Columns count from 0; a value of another type is converted as SQLite does, and never an error.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::span<const std::byte> blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int result, const char* what) const;

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// `flags` are sqlite3_open_v2's. Waits at most `busy_ms` for a lock of another process.
  Database(const std::string& path, int flags, int busy_ms = 0);

  Statement prepare(const char* sql) const { return {database_.get(), sql}; }
  void run(const char* sql) const { prepare(sql).step(); }
  /// The first column of the first row; 0 without one.
  std::int64_t integer(const char* sql) const;
  /// Rows that the last statement changed.
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace tilewright::cache
