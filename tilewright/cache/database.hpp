// A SQLite file that may be damaged or hostile: statements that throw, and nothing in the file that can act, run
// without end or take memory without bound.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tilewright/base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tilewright::cache {

struct DatabaseGuard;

/// `code` is SQLite's primary result code.
class DatabaseError : public Error {
 public:
  DatabaseError(int code, const std::string& message) : Error(message), code_(code) {}
  int code() const { return code_; }
  /// The file is proven to be no database, or one whose pages do not fit together. False for all that may pass: a lock,
  /// a full disk, too few descriptors, an I/O error.
  bool is_damage() const;

 private:
  int code_;
};

struct DatabaseLimits {
  int busy_ms = 0;              // how long to wait for a lock of another process
  double step_s = 10.0;         // that one step of a statement may take
  int value_bytes = 256 << 20;  // of one text or blob; as an entry of the cache
};

class Statement {
 public:
  /// Parameters count from 1. What is bound must live until the step. A null span or text is an empty one.
  void bind(int index, std::span<const std::byte> blob);
  void bind(int index, const std::string& text);
  void bind(int index, std::int64_t value);
  void bind(int index, double value);

  /// True when there is a row. All rows of a statement together are no more than the file can hold: else its pages are
  /// shared, which is damage.
  /// @throws DatabaseError, as every other member that calls SQLite; what the thread's interrupt check throws
  bool step();
  void reset();

  /// Columns count from 0; a value of another type is converted as SQLite does, and never an error.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column);
  std::span<const std::byte> blob(int column);

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(DatabaseGuard& guard, sqlite3* database, const char* sql);
  void check(int result, const char* what) const;
  void deliver(std::size_t bytes);

  DatabaseGuard* guard_;
  sqlite3* database_;
  std::int64_t delivered_ = 0;  // bytes, and one for each row
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// `flags` are sqlite3_open_v2's. Refused, without waiting: a path that is no regular file, also among the files that
  /// SQLite keeps beside it (the caller has looked, where the name is a URI); a schema with anything but plain tables,
  /// such as views, triggers and computed columns.
  Database(const std::string& path, int flags, const DatabaseLimits& limits = {});
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  Statement prepare(const char* sql) const;
  void run(const char* sql) const { prepare(sql).step(); }
  /// The first column of the first row; 0 without one.
  std::int64_t integer(const char* sql) const;
  /// Rows that the last statement changed.
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void configure() const;
  void check_schema() const;

  std::unique_ptr<DatabaseGuard> guard_;  // outlives the connection, which calls it
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace tilewright::cache
