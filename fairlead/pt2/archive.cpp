// The .pt2 archive: a zip of models/<name>.json and, in data/, the bytes of weights and constants.
//
//   <archive>/archive_format                           "pt2"
//   <archive>/archive_version                          "0"
//   <archive>/byteorder                                "little"
//   <archive>/models/model.json                        the program
//   <archive>/data/weights/model_weights_config.json   name -> file, type, sizes, strides, offset
//   <archive>/data/constants/model_constants_config.json
//   <archive>/data/sample_inputs/model.pt              the example, the one pickle that may be
//   there
//
// Python's pickles are programs: whatever else is pickled is refused before anything is read.
#include <simdjson.h>

#include <algorithm>
#include <bit>

#include "fairlead/base/error.h"
#include "fairlead/files/mapped_file.h"
#include "fairlead/pt2/import.h"
#include "fairlead/pt2/import_impl.h"
#include "fairlead/pt2/zip.h"

namespace fairlead::pt2 {
namespace {

constexpr std::string_view kWeights = "data/weights/";
constexpr std::string_view kConstants = "data/constants/";

// Names under which PyTorch would unpickle what it finds, or load it as a library.
constexpr std::string_view kCodeSuffixes[] = {".pt", ".pth", ".pkl",   ".pickle", ".ckpt", ".bin",
                                              ".so", ".dll", ".dylib", ".py",     ".pyc"};
constexpr std::string_view kCodePrefixes[] = {"custom_obj_", "opaque_obj_"};
constexpr std::string_view kCodeFolders[] = {"data/aotinductor/", "data/mtia/"};

// A tensor may be expanded (strides of 0) beyond the bytes that are stored by this much: what is
// written is dense.
constexpr std::int64_t kMostExpanded = std::int64_t{1} << 30;

class Archive {
 public:
  Archive(Bytes bytes, std::string_view where)
      : entries_(zip_entries(bytes, where)), where_(where) {}

  [[nodiscard]] Imported read() {
    find_program();
    check_layout();
    refuse_code();
    read_tensors(std::string(kWeights), model_ + "_weights_config.json");
    read_tensors(std::string(kConstants), model_ + "_constants_config.json");
    contents_.program = as_text(entries_.find(program_)->second);
    if (const auto it = entries_.find(sample_inputs()); it != entries_.end()) {
      contents_.sample_inputs = it->second;
    }
    Imported imported = import_program(contents_.program, tensors_, where_);
    imported.contents = std::move(contents_);
    return imported;
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

  [[nodiscard]] std::string sample_inputs() const {
    return prefix_ + "data/sample_inputs/" + model_ + ".pt";
  }

  [[noreturn]] void fail_code(const std::string& what) const {
    fail(ErrorCode::kUnsupported,
         "Expected an archive of plain tensors, got " + what +
             ", which is code that reading would run. Nothing was loaded. Load it with "
             "torch.export.load where you trust it, replace what is not a plain tensor, and save "
             "it again");
  }

  void refuse_code() const {
    const std::string sample = sample_inputs();
    const std::string extra = prefix_ + "data/extra/";
    for (const auto& [name, bytes] : entries_) {
      // Extra files are the user's own; nobody reads them.
      if (name == sample || name.starts_with(extra)) continue;
      const std::string_view path =
          std::string_view(name).substr(name.starts_with(prefix_) ? prefix_.size() : 0);
      const std::string_view file = path.substr(path.rfind('/') + 1);
      for (const std::string_view suffix : kCodeSuffixes) {
        if (name.ends_with(suffix)) fail_code("the entry '" + name + "'");
      }
      for (const std::string_view start : kCodePrefixes) {
        if (file.starts_with(start)) fail_code("the object '" + name + "'");
      }
      for (const std::string_view folder : kCodeFolders) {
        if (path.starts_with(folder)) fail_code("the compiled model '" + name + "'");
      }
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
    // Anything but a plain false, also where PyTorch would take it for true.
    bool pickled = false;
    const auto flag = json["use_pickle"];
    if (flag.error() != simdjson::NO_SUCH_FIELD &&
        (flag.get(pickled) != simdjson::SUCCESS || pickled)) {
      fail_code("the pickled tensor '" + name + "'");
    }
    const std::string_view path = json["path_name"];
    for (const std::string_view start : kCodePrefixes) {
      if (path.starts_with(start)) fail_code("the object '" + name + "'");
    }
    const dom::object meta = json["tensor_meta"];
    StoredTensor stored;
    stored.name = name;
    stored.is_constant = folder == kConstants;
    Tensor& tensor = stored.tensor;
    tensor.dtype = dtype_of_code(std::int64_t(meta["dtype"]), name);
    for (const dom::element dim : dom::array(meta["sizes"]))
      tensor.dims.push_back(std::int64_t(dim["as_int"]));
    for (const dom::element s : dom::array(meta["strides"]))
      tensor.strides.push_back(std::int64_t(s["as_int"]));
    stored.offset = std::int64_t(meta["storage_offset"]["as_int"]);
    if (meta["requires_grad"].get(stored.requires_grad) != simdjson::SUCCESS)
      stored.requires_grad = false;
    if (json["is_param"].get(stored.is_parameter) != simdjson::SUCCESS) stored.is_parameter = false;
    const std::string file = prefix_ + folder + std::string(path);
    const auto bytes = entries_.find(file);
    if (bytes == entries_.end()) {
      fail(ErrorCode::kInvalidInput, "Expected the bytes of '" + name + "' in " + file +
                                         ", got no such entry. Save the program again");
    }
    check_extent(name, tensor, stored.offset, bytes->second.size());
    tensor.data =
        bytes->second.data() + static_cast<std::size_t>(stored.offset) * dtype_size(tensor.dtype);
    stored.payload = payload(file, bytes->second);
    Tensor read = tensor;
    drop_plain_strides(read);
    tensors_.insert_or_assign(name, std::move(read));
    contents_.tensors.push_back(std::move(stored));
  }

  [[nodiscard]] std::size_t payload(const std::string& file, Bytes bytes) {
    const auto [it, is_new] = payloads_.try_emplace(file, contents_.payloads.size());
    if (is_new) contents_.payloads.push_back(bytes);
    return it->second;
  }

  // Every element lies within the bytes, and what is expanded stays within its limit.
  void check_extent(const std::string& name, const Tensor& tensor, std::int64_t offset,
                    std::size_t bytes) const {
    const auto size = static_cast<std::int64_t>(dtype_size(tensor.dtype));
    const auto limit = static_cast<std::int64_t>(bytes) / size;
    const std::int64_t most = limit + kMostExpanded / size;
    bool fits = tensor.dims.size() == tensor.strides.size() && offset >= 0 && offset <= limit;
    const bool empty = std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end();
    std::int64_t last = offset;
    std::int64_t count = 1;
    for (std::size_t k = 0; fits && k < tensor.dims.size(); ++k) {
      const std::int64_t dim = tensor.dims[k];
      const std::int64_t stride = tensor.strides[k];
      // A size beside one of 0 is bounded too: what follows multiplies them.
      fits = dim >= 0 && stride >= 0 && dim <= most / std::max<std::int64_t>(count, 1);
      if (!fits || dim == 0) continue;
      count *= dim;
      if (empty || dim == 1 || stride == 0) continue;
      fits = dim - 1 <= (limit - last) / stride;
      if (fits) last += (dim - 1) * stride;
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
  Contents contents_;
  std::map<std::string, std::size_t> payloads_;  // by entry
};

}  // namespace

Imported read_pt2(std::span<const std::byte> archive, std::string_view where) {
  return Archive(archive, where).read();
}

Imported read_pt2(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(
      path, "pt2", "Give the name of a file that torch.export.save wrote.");
  Imported imported = read_pt2(file->bytes(), path);
  imported.file = file;
  return imported;
}

}  // namespace fairlead::pt2
