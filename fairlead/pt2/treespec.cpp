// Trees as torch.utils._pytree dumps them: [1, {"type": ..., "context": ..., "children_spec":
// [...]}].
//
// The context of a dict, and of a dataclass of Transformers, is the list of its keys. A cache comes
// in two forms: as a dict of key_cache and value_cache, or with a context that says which attribute
// of which layer each tensor is; both are named by layer.
#include "fairlead/pt2/treespec.h"

#include <simdjson.h>

#include <algorithm>
#include <set>

#include "fairlead/base/error.h"

namespace fairlead::pt2 {
namespace {

namespace dom = simdjson::dom;

constexpr int kMaxDepth = 200;

std::string join(const std::string& prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text = join(text, part);
  return text;
}

// layers.3.keys and key_cache.3 -> 3.key
std::string cache_name(std::vector<std::string> parts) {
  std::erase(parts, "layers");
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::string& part = parts[k];
    if (part == "keys") part = "key";
    if (part == "values") part = "value";
    if ((part == "key_cache" || part == "value_cache") && k + 1 < parts.size()) {
      part.resize(part.find('_'));
      std::swap(part, parts[k + 1]);
      ++k;
    }
  }
  return joined(parts);
}

// The names of tensors by number in a context that describes an object.
void name_tensors(dom::element state, std::vector<std::string>& path,
                  std::vector<std::string>& names) {
  if (path.size() > kMaxDepth) return;
  dom::object object;
  if (state.get(object) != simdjson::SUCCESS) return;
  std::uint64_t number = 0;
  dom::array list;
  dom::object fields;
  if (object["tensor"].get(number) == simdjson::SUCCESS) {
    if (number < names.size()) names[number] = cache_name(path);
  } else if (object["list"].get(list) == simdjson::SUCCESS) {
    std::size_t k = 0;
    for (const dom::element item : list) {
      path.push_back(std::to_string(k++));
      name_tensors(item, path, names);
      path.pop_back();
    }
  } else if (object["state"].get(fields) == simdjson::SUCCESS) {
    for (const auto field : fields) {
      path.emplace_back(field.key);
      name_tensors(field.value, path, names);
      path.pop_back();
    }
  }
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>* parameters) : parameters_(parameters) {}

  [[nodiscard]] std::vector<std::string> read(std::string_view text) {
    dom::parser parser;
    const dom::element root = parser.parse(text.data(), text.size());
    const dom::element tree = dom::array(root).at(1);
    if (parameters_ != nullptr) {
      read_call(tree);
    } else if (const std::string_view type = type_of(tree); type.empty()) {
      leaves_.emplace_back("output");
    } else {
      walk(tree, type.ends_with("Cache") ? "past_key_values" : "", 0);
    }
    return std::move(leaves_);
  }

  [[nodiscard]] std::vector<std::string> classes() const {
    return {classes_.begin(), classes_.end()};
  }

 private:
  [[nodiscard]] static std::string_view type_of(dom::element tree) {
    std::string_view type;
    if (tree["type"].get(type) != simdjson::SUCCESS) return {};
    return type;
  }
  [[nodiscard]] static dom::array children(dom::element tree) { return tree["children_spec"]; }

  // A tuple of positional and a dict of named arguments.
  void read_call(dom::element tree) {
    const dom::array parts = children(tree);
    std::size_t k = 0;
    for (const dom::element argument : children(parts.at(0))) {
      const std::string name =
          k < parameters_->size() ? (*parameters_)[k] : "input_" + std::to_string(k);
      walk(argument, name, 1);
      ++k;
    }
    walk(parts.at(1), "", 1);
  }

  void walk(dom::element tree, const std::string& path, int depth) {
    if (depth > kMaxDepth) {
      throw Error(ErrorCode::kParse, "[pt2] Expected at most 200 nested containers in the inputs.");
    }
    const std::string_view type = type_of(tree);
    if (type.empty()) {
      leaves_.push_back(path);
      return;
    }
    if (!type.starts_with("builtins.")) classes_.emplace(type);
    const dom::array inner = children(tree);
    std::size_t count = 0;
    for (const dom::element child : inner) {
      (void)child;
      ++count;
    }
    const std::vector<std::string> names = names_of(tree, count);
    const std::size_t first = leaves_.size();
    std::size_t k = 0;
    for (const dom::element child : inner) walk(child, join(path, names[k++]), depth + 1);
    if (type.ends_with("Cache")) name_cache(first, path);
  }

  // What a dict of lists gave: key_cache.0, or self_attention_cache.0.key of an encoder-decoder
  // cache.
  void name_cache(std::size_t first, const std::string& path) {
    for (std::size_t k = first; k < leaves_.size(); ++k) {
      std::vector<std::string> parts;
      std::string_view rest = leaves_[k];
      if (!path.empty()) rest.remove_prefix(std::min(path.size() + 1, rest.size()));
      while (!rest.empty()) {
        const std::size_t dot = std::min(rest.find('.'), rest.size());
        parts.emplace_back(rest.substr(0, dot));
        rest.remove_prefix(std::min(dot + 1, rest.size()));
      }
      if (parts.size() > 2 && is_number(parts[1])) {
        if (parts[0] == "self_attention_cache") parts[0] = "decoder";
        if (parts[0] == "cross_attention_cache") parts[0] = "encoder";
        if (parts[0] == "decoder" || parts[0] == "encoder") std::swap(parts[0], parts[1]);
      }
      leaves_[k] = join(path, cache_name(parts));
    }
  }

  [[nodiscard]] static std::vector<std::string> names_of(dom::element tree, std::size_t count) {
    std::vector<std::string> names;
    std::string_view context;
    if (tree["context"].get(context) == simdjson::SUCCESS) {
      dom::parser parser;
      dom::element inside;
      dom::array keys;
      if (parser.parse(context.data(), context.size()).get(inside) == simdjson::SUCCESS) {
        if (inside.get(keys) == simdjson::SUCCESS) {
          for (const dom::element key : keys) {
            std::string_view text;
            names.push_back(key.get(text) == simdjson::SUCCESS ? std::string(text)
                                                               : simdjson::minify(key));
          }
        } else {
          names.resize(count);
          std::vector<std::string> path;
          name_tensors(inside, path, names);
          if (std::any_of(names.begin(), names.end(), [](const auto& n) { return n.empty(); })) {
            names.clear();
          }
        }
      }
    }
    if (names.size() != count) {
      names.clear();
      for (std::size_t k = 0; k < count; ++k) names.push_back(std::to_string(k));
    }
    return names;
  }

  const std::vector<std::string>* parameters_;
  std::vector<std::string> leaves_;
  std::set<std::string> classes_;
};

template <typename Use>
auto checked(const Use& use) {
  try {
    return use();
  } catch (const simdjson::simdjson_error& error) {
    throw Error(ErrorCode::kParse, std::string("[pt2] Expected the tree of the program's inputs or "
                                               "outputs, got another text: ") +
                                       error.what());
  }
}

}  // namespace

std::vector<std::string> input_names(std::string_view in_spec,
                                     const std::vector<std::string>& parameters) {
  return checked([&] { return Reader(&parameters).read(in_spec); });
}

std::vector<std::string> output_paths(std::string_view out_spec) {
  return checked([&] { return Reader(nullptr).read(out_spec); });
}

std::vector<std::string> tree_classes(std::string_view spec) {
  return checked([&] {
    Reader reader(nullptr);
    (void)reader.read(spec);
    return reader.classes();
  });
}

std::vector<std::string> output_names(const std::vector<std::string>& paths,
                                      const std::vector<std::string>& inputs) {
  std::set<std::string> taken(inputs.begin(), inputs.end());
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    std::string name;
    std::string_view rest = path;
    while (true) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      name = join(name, part == "past_key_values" ? "present" : part);
      if (dot == rest.size()) break;
      rest.remove_prefix(dot + 1);
    }
    while (!taken.insert(name).second) {
      const std::size_t dot = name.find('.');
      const std::string present =
          "present." + (dot == std::string::npos ? name : name.substr(dot + 1));
      name = taken.contains(present) ? "output." + present : present;
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace fairlead::pt2
