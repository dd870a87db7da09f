// The files that hold the tensors of models: how they are named, who names them, and when they may
// go.
//
// A model and its data are two files, and nothing renames two files at once. So the name of the
// data is that of its content ("model.onnx.0f3a5c7e9b1d2846.data") and stands in the model: a model
// never finds data that is not its own. Renaming the model is the commit; data that no model of the
// folder names is then nobody's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fairlead {
class ContentHash;
class Staging;
}  // namespace fairlead

namespace fairlead::onnx {

[[nodiscard]] std::string data_name(const std::string& model, const ContentHash& hash);

// Whether a file may be the data of `model`; of any model where it is empty.
[[nodiscard]] bool is_data_name(const std::string& name, const std::string& model = {});

// The files beside a model that it refers to: none where the file is not a model, nothing where it
// cannot be read.
[[nodiscard]] std::optional<std::set<std::string>> data_named_by(const std::string& path);
// Reads the data beside a model of Fairlead's whose name is the hash of its content; its bytes.
// Throws Error(kIo) where a file has another hash.
std::int64_t check_data(const std::string& path);

// A staged model, path(), and its staged data get their final names. Afterwards data of this name
// that no model refers to is removed: at once where it never belonged to one, and half a second
// later where it is that of the model which was replaced, because others may be between opening
// that and opening its data. `data` is the name of the data in the staging; empty: none. Throws
// Error(kIo).
void commit_model(Staging& staging, const std::string& data);

// Files of a staging go into the folder of its target, in this order, and data that the models
// among them no longer need is removed in the same way. What else is there is not touched. Throws
// Error(kIo).
void commit_files(Staging& staging, const std::vector<std::string>& names);

// A staged folder gets its final name, and data that it no longer needs is removed in the same way.
void commit_folder(Staging& staging);

}  // namespace fairlead::onnx
