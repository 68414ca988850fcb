// Access to SQLite files that may be damaged or hostile. Errors are exceptions; nothing in such a file can execute
// code, make a statement run forever or use unbounded memory.
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

/// An error of SQLite; code() is its primary result code.
class DatabaseError : public Error {
 public:
  DatabaseError(int code, const std::string& message) : Error(message), code_(code) {}
  int code() const { return code_; }
  /// Whether the file is certainly damaged: SQLITE_NOTADB or SQLITE_CORRUPT. False for errors that may be temporary,
  /// such as a lock, a full disk, a lack of descriptors or an I/O error.
  bool is_damage() const;

 private:
  int code_;
};

struct DatabaseLimits {
  int busy_timeout_ms = 0;          // how long to wait for a lock of another process
  double step_timeout_s = 10.0;     // time limit of one step of a statement
  int max_value_bytes = 256 << 20;  // limit of one text or blob, the same as of a cache entry
};

class Statement {
 public:
  /// Parameters are numbered from 1. Blobs and texts must stay alive until step(). A null blob is bound as NULL.
  void bind(int index, std::span<const std::byte> blob);
  void bind(int index, const std::string& text);
  void bind(int index, std::int64_t value);
  void bind(int index, double value);

  /// True when there is a row. The rows of a statement may not have more bytes in total than the file can hold, which a
  /// damaged file exceeds when several rows share a page.
  /// @throws DatabaseError, as every other member that calls SQLite does; whatever check_interruption() throws.
  bool step();
  void reset();

  /// Columns are numbered from 0. A value of another type is converted by SQLite's rules; that is never an error.
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
  void count_bytes_read(std::size_t bytes);

  DatabaseGuard* guard_;
  sqlite3* database_;
  std::int64_t bytes_read_ = 0;  // bytes of all values read, plus one per row
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// `flags` are those of sqlite3_open_v2(). The path and the files that SQLite keeps beside it must be regular files
  /// or missing; with SQLITE_OPEN_URI the caller must have checked that. The schema may contain nothing but plain
  /// tables: no views, triggers or computed columns.
  /// @throws DatabaseError, without blocking when one of the files is a FIFO.
  Database(const std::string& path, int flags, const DatabaseLimits& limits = {});
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  Statement prepare(const char* sql) const;
  void run(const char* sql) const { prepare(sql).step(); }
  /// The first column of the first row; 0 when there is no row.
  std::int64_t integer(const char* sql) const;
  /// Number of rows that the last statement changed.
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void configure() const;
  void check_schema() const;

  std::unique_ptr<DatabaseGuard> guard_;  // must outlive the connection, whose callbacks use it
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace tilewright::cache
