// The .pt2 archive: a zip of models/<name>.json and, in data/, the bytes of weights and constants.
//
//   <archive>/archive_format                           "pt2"
//   <archive>/archive_version                          "0"
//   <archive>/byteorder                                "little"
//   <archive>/models/model.json                        the program
//   <archive>/data/weights/model_weights_config.json   name -> file, type, sizes, strides, offset
//   <archive>/data/constants/model_constants_config.json
#include <simdjson.h>

#include <bit>

#include "fairlead/base/error.h"
#include "fairlead/pt2/import.h"
#include "fairlead/pt2/import_impl.h"
#include "fairlead/pt2/mapped_file.h"
#include "fairlead/pt2/zip.h"

namespace fairlead::pt2 {
namespace {

class Archive {
 public:
  Archive(Bytes bytes, std::string_view where)
      : entries_(zip_entries(bytes, where)), where_(where) {}

  [[nodiscard]] Imported read() {
    find_program();
    check_layout();
    read_tensors("data/weights/", model_ + "_weights_config.json");
    read_tensors("data/constants/", model_ + "_constants_config.json");
    return import_program(as_text(entries_.find(program_)->second), tensors_, where_);
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& sentence) const {
    throw Error(code, "[pt2] " + sentence + " (" + std::string(where_) + ").");
  }

  void find_program() {
    constexpr std::string_view kFolder = "models/";
    constexpr std::string_view kEnd = ".json";
    for (const auto& [name, bytes] : entries_) {
      if (name.ends_with("serialized_exported_program.json")) {
        const auto version =
            entries_.find(std::string(name.substr(0, name.rfind('/') + 1)) + "version");
        fail(ErrorCode::kUnsupported,
             "Expected the archive format of torch 2.8 or later, got the older one" +
                 (version == entries_.end()
                      ? std::string()
                      : " (version " + std::string(as_text(version->second)) + ")") +
                 ". Load it with torch.export.load and save it again");
      }
      const std::size_t at = name.rfind(kFolder);
      if (at == std::string::npos || (at > 0 && name[at - 1] != '/') || !name.ends_with(kEnd))
        continue;
      if (!program_.empty()) {
        fail(ErrorCode::kUnsupported, "Expected an archive of one program, got several: " +
                                          program_ + " and " + name + ". Save them separately");
      }
      program_ = name;
      prefix_ = name.substr(0, at);
      model_ = name.substr(at + kFolder.size());
      model_.resize(model_.size() - kEnd.size());
    }
    if (program_.empty()) {
      fail(ErrorCode::kParse,
           "Expected a program under models/, got an archive without one. "
           "torch.export.save writes it; compiled packages and checkpoints have none");
    }
  }

  [[nodiscard]] std::string_view text(const std::string& name) const {
    const auto it = entries_.find(prefix_ + name);
    return it == entries_.end() ? std::string_view() : as_text(it->second);
  }

  void check_layout() const {
    if (text("archive_format") != "pt2") {
      fail(ErrorCode::kUnsupported, "Expected archive format 'pt2', got '" +
                                        std::string(text("archive_format").substr(0, 40)) + "'");
    }
    if (text("archive_version") != "0") {
      fail(ErrorCode::kUnsupported,
           "Expected archive version 0, got '" +
               std::string(text("archive_version").substr(0, 40)) +
               "'. Save the program with an older torch, or update Fairlead");
    }
    const std::string_view order = text("byteorder");
    if (order == "big" || (order == "little" && std::endian::native != std::endian::little)) {
      fail(ErrorCode::kUnsupported,
           "Expected bytes in the order of this machine, got " + std::string(order));
    }
  }

  void read_tensors(const std::string& folder, const std::string& config) {
    const auto it = entries_.find(prefix_ + folder + config);
    if (it == entries_.end())
      return;  // a program without: what is missing is named where it is read
    try {
      dom::parser parser;
      const std::string_view json = as_text(it->second);
      const dom::element root = parser.parse(json.data(), json.size());
      for (const auto field : dom::object(root["config"])) {
        read_tensor(folder, std::string(field.key), field.value);
      }
    } catch (const simdjson::simdjson_error& error) {
      fail(ErrorCode::kParse, "Expected a list of tensors in " + config +
                                  ", got damaged JSON: " + std::string(error.what()));
    }
  }

  void read_tensor(const std::string& folder, const std::string& name, dom::element json) {
    bool pickled = false;
    if (json["use_pickle"].get(pickled) == simdjson::SUCCESS && pickled) {
      // Custom objects come here too; one that the program needs is missed there.
      return;
    }
    dom::object meta;
    if (json["tensor_meta"].get(meta) != simdjson::SUCCESS) return;
    Tensor tensor;
    tensor.dtype = dtype_of_code(std::int64_t(meta["dtype"]), name);
    for (const dom::element dim : dom::array(meta["sizes"]))
      tensor.dims.push_back(std::int64_t(dim["as_int"]));
    for (const dom::element s : dom::array(meta["strides"]))
      tensor.strides.push_back(std::int64_t(s["as_int"]));
    const std::int64_t offset = std::int64_t(meta["storage_offset"]["as_int"]);
    const std::string file = prefix_ + folder + std::string(std::string_view(json["path_name"]));
    const auto bytes = entries_.find(file);
    if (bytes == entries_.end()) {
      fail(ErrorCode::kInvalidInput, "Expected the bytes of '" + name + "' in " + file +
                                         ", got no such entry. Save the program again");
    }
    tensor.data = bytes->second.data();
    check_extent(name, tensor, offset, bytes->second.size());
    tensor.data += static_cast<std::size_t>(offset) * dtype_size(tensor.dtype);
    drop_plain_strides(tensor);
    tensors_.insert_or_assign(name, std::move(tensor));
  }

  // The last element lies within the bytes; every product is checked before it is made.
  void check_extent(const std::string& name, const Tensor& tensor, std::int64_t offset,
                    std::size_t bytes) const {
    const auto limit = static_cast<std::int64_t>(bytes / dtype_size(tensor.dtype));
    std::int64_t last = offset;
    bool empty = false;
    bool fits = tensor.dims.size() == tensor.strides.size() && offset >= 0 && offset <= limit;
    for (std::size_t k = 0; fits && k < tensor.dims.size(); ++k) {
      const std::int64_t dim = tensor.dims[k];
      const std::int64_t stride = tensor.strides[k];
      if (dim < 0 || stride < 0) fits = false;
      empty = empty || dim == 0;
      if (!fits || dim <= 1 || stride == 0) continue;
      if (dim - 1 > limit / stride) fits = empty || false;
      if (fits) last += (dim - 1) * stride;
      if (last > limit && !empty) fits = false;
    }
    if (!fits || (!empty && last >= limit)) {
      fail(ErrorCode::kInvalidInput,
           "Expected '" + name + "' to lie within its " + std::to_string(bytes) +
               " bytes, got sizes and strides that go beyond. Save the program "
               "again");
    }
  }

  static void drop_plain_strides(Tensor& tensor) {
    std::int64_t step = 1;
    for (std::size_t k = tensor.dims.size(); k-- > 0;) {
      if (tensor.dims[k] != 1 && tensor.strides[k] != step) return;
      step *= tensor.dims[k];
    }
    tensor.strides.clear();
  }

  std::map<std::string, Bytes, std::less<>> entries_;
  std::string_view where_;
  std::string program_, prefix_, model_;
  Tensors tensors_;
};

}  // namespace

Imported read_pt2(std::span<const std::byte> archive, std::string_view where) {
  return Archive(archive, where).read();
}

Imported read_pt2(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  Imported imported = read_pt2(file->bytes(), path);
  imported.file = file;
  return imported;
}

}  // namespace fairlead::pt2
