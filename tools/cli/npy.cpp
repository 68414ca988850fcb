#include "tools/cli/npy.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy writes about 80 characters for a matrix and refuses headers of more than 10000 characters when it reads.
constexpr std::size_t kLongestHeader = 10000;

struct TypeRow {
  DType dtype;
  std::string_view descr;
};
constexpr std::array<TypeRow, 6> kTypes{{
    {DType::f64, "<f8"},
    {DType::f32, "<f4"},
    {DType::f16, "<f2"},
    {DType::s32, "<i4"},
    {DType::s8, "|i1"},
    {DType::u8, "|u1"},
}};

std::optional<DType> dtype_of(std::string_view descr) {
  for (const TypeRow& row : kTypes) {
    if (descr == row.descr) return row.dtype;
  }
  return std::nullopt;
}

// Reads the header, a Python dictionary whose values are strings, booleans and tuples of integers.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  bool take(char expected) {
    skip_spaces();
    if (text_.empty() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::optional<std::string> string() {
    for (const char quote : {'\'', '"'}) {
      if (!take(quote)) continue;
      const std::size_t end = text_.find(quote);
      if (end == std::string_view::npos) return std::nullopt;
      std::string value(text_.substr(0, end));
      text_.remove_prefix(end + 1);
      return value;
    }
    return std::nullopt;
  }

  std::optional<bool> boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    return std::nullopt;
  }

  /// A tuple of integers as text, so that an error message can quote an integer that does not fit into 64 bits.
  std::optional<std::vector<std::string>> integers() {
    std::vector<std::string> values;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      skip_spaces();
      const std::size_t length = std::min(text_.find_first_not_of("-0123456789"), text_.size());
      if (length == 0) return std::nullopt;
      values.emplace_back(text_.substr(0, length));
      text_.remove_prefix(length);
      if (take(',')) continue;
      if (!take(')')) return std::nullopt;
      return values;
    }
    return values;
  }

 private:
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }

  std::string_view text_;
};

struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::string>> shape;
};

Result<Fields> read_fields(std::string_view text) {
  DictionaryReader reader(text);
  const Refusal malformed = refuse("its header is not the dictionary of a .npy file: {}", printable(text, 60));
  Fields fields;
  if (!reader.take('{')) return malformed;
  while (!reader.take('}')) {
    const std::optional<std::string> key = reader.string();
    if (!key || !reader.take(':')) return malformed;
    if (*key == "descr") {
      fields.descr = reader.string();
      if (!fields.descr) return refuse("its dtype is a structured type: save a plain array of numbers");
    } else if (*key == "fortran_order") {
      fields.fortran_order = reader.boolean();
    } else if (*key == "shape") {
      fields.shape = reader.integers();
    } else {
      return malformed;
    }
    reader.take(',');
  }
  if (!fields.descr || !fields.fortran_order || !fields.shape) return malformed;
  return fields;
}

std::optional<std::int64_t> parse_extent(const std::string& digits) {
  const bool is_plain = !digits.empty() && digits.size() <= 18 && digits.find('-') == std::string::npos;
  return is_plain ? std::optional<std::int64_t>(std::stoll(digits)) : std::nullopt;
}

Result<op::Dims> check_shape(std::vector<std::string> extents, DType dtype, bool takes_vectors) {
  if (takes_vectors && extents.size() == 1) extents.insert(extents.begin(), "1");
  if (extents.size() != 2 && extents.size() != 3) {
    return refuse("it has {} dimensions: reshape it to (rows, columns) or (batch, rows, columns)", extents.size());
  }
  op::Dims shape = extents.size() == 2 ? op::Dims{0, 0} : op::Dims{0, 0, 0};
  std::int64_t size = bytes(dtype);
  for (int mode = 0; mode < shape.rank(); ++mode) {
    const std::optional<std::int64_t> extent = parse_extent(extents[static_cast<std::size_t>(mode)]);
    if (!extent || __builtin_mul_overflow(size, std::max<std::int64_t>(1, *extent), &size)) {
      return refuse("its shape ({}) is impossible", printable(fmt::format("{}", fmt::join(extents, ",")), 60));
    }
    shape[mode] = *extent;
  }
  return shape;
}

std::int64_t size_of(DType dtype, const op::Dims& shape) {
  std::int64_t size = bytes(dtype);
  for (int mode = 0; mode < shape.rank(); ++mode) size *= shape[mode];
  return size;
}

Result<NpyHeader> check_fields(const Fields& fields, bool takes_vectors) {
  NpyHeader header;
  const std::string descr = printable(*fields.descr, 20);
  const std::optional<DType> dtype = dtype_of(*fields.descr);
  if (!dtype) {
    if (fields.descr->starts_with('>'))
      return refuse("its dtype '{}' is big endian: convert with .astype('<{}')", descr, descr.substr(1));
    return refuse("its dtype '{}' is not one of f8 f4 f2 i4 i1 u1: convert with .astype(numpy.float32)", descr);
  }
  header.dtype = *dtype;
  if (*fields.fortran_order) {
    return refuse(
        "it is in Fortran order: save numpy.ascontiguousarray(x), or save x.T and pass --transpose-a (-b, -c)");
  }
  const Result<op::Dims> shape = check_shape(*fields.shape, *dtype, takes_vectors);
  if (!shape) return shape.refusal();
  header.shape = *shape;
  header.is_vector = fields.shape->size() == 1;
  return header;
}

std::size_t little_endian(std::span<const std::byte> digits) {
  std::size_t value = 0;
  for (std::size_t i = digits.size(); i-- > 0;) value = value << 8 | std::to_integer<std::size_t>(digits[i]);
  return value;
}

struct FieldsOfFile {
  Fields fields;
  std::int64_t data_offset = 0;
};

Result<FieldsOfFile> read_fields_of_file(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return refuse("it is not a .npy file");
  if (file.size() < kMagic.size() + 4) return refuse("it ends inside its header, at byte {}", file.size());
  const int major = std::to_integer<int>(file[kMagic.size()]);
  if (major < 1 || major > 3) return refuse("its format version is {}, not 1, 2 or 3", major);
  const std::size_t length_digits = major == 1 ? 2 : 4;
  const std::size_t begin = kMagic.size() + 2 + length_digits;
  if (file.size() < begin) return refuse("it ends inside its header, at byte {}", file.size());
  const std::size_t length = little_endian(file.subspan(kMagic.size() + 2, length_digits));
  if (length > kLongestHeader)
    return refuse("its header states a length of {} bytes, more than {}", length, kLongestHeader);
  if (file.size() - begin < length) return refuse("it ends inside its header, at byte {}", file.size());
  const Result<Fields> fields = read_fields(text.substr(begin, length));
  if (!fields) return fields.refusal();
  return FieldsOfFile{*fields, static_cast<std::int64_t>(begin + length)};
}

/// Bytes per element of a type such as "<f4" or "|b1"; 0 for types other than little-endian numbers.
std::int64_t element_bytes(std::string_view descr) {
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '|') ||
      std::string_view("biufc").find(descr[1]) == descr.npos)
    return 0;
  const std::string digits(descr.substr(2));
  return digits.size() <= 2 ? parse_extent(digits).value_or(0) : 0;
}

/// The file from its start to the end of the data, of which `head` are the first bytes.
struct OpenedNpy {
  Result<compile::UniqueFd> file;
  std::vector<std::byte> head;
};

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw InvalidArgument(fmt::format("{}: {}", printable(path), why));
}

OpenedNpy open_npy(const std::string& path) {
  Result<compile::UniqueFd> opened = compile::open_regular_file(path);
  if (!opened) refuse_file(path, "cannot be opened: " + opened.reason());
  OpenedNpy npy{std::move(opened), std::vector<std::byte>(kLongestHeader + 16)};
  npy.head.resize(compile::read_at(npy.file->get(), npy.head, 0, path));
  return npy;
}

/// Reads `size` bytes of data; `what` names the array in the message if there are fewer.
std::vector<std::byte> read_data(const OpenedNpy& npy, const std::string& path, std::int64_t offset, std::int64_t size,
                                 const std::string& what) {
  struct stat status {};
  if (::fstat(npy.file->get(), &status) != 0)
    refuse_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  const auto check_available = [&](std::int64_t available) {
    if (available >= size) return;
    refuse_file(path, fmt::format("it is truncated: {} needs {} bytes of data, it has {}", what, size,
                                  std::max<std::int64_t>(0, available)));
  };
  check_available(status.st_size - offset);
  std::vector<std::byte> data(static_cast<std::size_t>(size));
  check_available(static_cast<std::int64_t>(compile::read_at(npy.file->get(), data, offset, path)));
  return data;
}

/// The bytes of a .npy file, format version 1.0.
std::vector<std::byte> file_bytes(std::string_view descr, std::string_view shape, std::span<const std::byte> data) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  // The data begins at a multiple of 64 bytes, and the header ends with a line feed.
  const std::size_t prefix = kMagic.size() + 4;
  dictionary.append(63 - (prefix + dictionary.size()) % 64, ' ');
  dictionary += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  header += dictionary;

  std::vector<std::byte> file(header.size() + data.size());
  std::memcpy(file.data(), header.data(), header.size());
  if (!data.empty()) std::memcpy(file.data() + header.size(), data.data(), data.size());
  return file;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file, bool takes_vectors) {
  const Result<FieldsOfFile> fields = read_fields_of_file(file);
  if (!fields) return fields.refusal();
  Result<NpyHeader> header = check_fields(fields->fields, takes_vectors);
  if (!header) return header;
  NpyHeader complete = *header;
  complete.data_offset = fields->data_offset;
  return complete;
}

op::Tensor NpyMatrix::tensor() const {
  const int rows = shape.rank() - 2;
  const op::Tensor matrix = op::matrix(data.data(), dtype, shape[rows], shape[rows + 1]);
  return rows == 0 ? matrix : op::batched(matrix, shape[0]);
}

NpyMatrix read_npy(const std::string& path, bool takes_vectors) {
  const OpenedNpy npy = open_npy(path);
  const Result<NpyHeader> header = parse_npy_header(npy.head, takes_vectors);
  if (!header) refuse_file(path, header.reason());
  NpyMatrix matrix{header->dtype, header->shape, {}, header->is_vector};
  const std::string what = fmt::format("a {} array of shape {}", name(header->dtype), op::to_string(header->shape));
  matrix.data = read_data(npy, path, header->data_offset, size_of(header->dtype, header->shape), what);
  return matrix;
}

std::vector<std::byte> npy_bytes(const NpyMatrix& matrix) {
  const auto row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) { return r.dtype == matrix.dtype; });
  TILEWRIGHT_CHECK(row != kTypes.end(), "a .npy file cannot hold {}", name(matrix.dtype));
  return file_bytes(row->descr, op::to_string(matrix.shape), matrix.data);
}

std::int64_t NpyArray::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

NpyArray read_npy_array(const std::string& path) {
  const OpenedNpy npy = open_npy(path);
  const Result<FieldsOfFile> fields = read_fields_of_file(npy.head);
  if (!fields) refuse_file(path, fields.reason());
  NpyArray array{*fields->fields.descr, {}, {}};
  std::int64_t size = element_bytes(array.descr);
  if (size == 0)
    refuse_file(path, fmt::format("its dtype '{}' is not a little-endian number", printable(array.descr, 20)));
  if (*fields->fields.fortran_order) refuse_file(path, "it is in Fortran order: save numpy.ascontiguousarray(x)");
  for (const std::string& digits : *fields->fields.shape) {
    const std::optional<std::int64_t> extent = parse_extent(digits);
    if (!extent || __builtin_mul_overflow(size, std::max<std::int64_t>(1, *extent), &size))
      refuse_file(path, "its shape is impossible");
    array.shape.push_back(*extent);
  }
  if (array.elements() == 0) return array;
  array.data = read_data(npy, path, fields->data_offset, size, "the array");
  return array;
}

std::vector<std::byte> npy_bytes(const NpyArray& array) {
  const std::string shape = fmt::format("({}{})", fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  return file_bytes(array.descr, shape, array.data);
}

}  // namespace tilewright::cli
