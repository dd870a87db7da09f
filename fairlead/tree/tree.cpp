// Building trees and walking them.
#include "fairlead/tree/tree.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "fairlead/base/error.h"

namespace fairlead {

std::string_view kind_name(NodeKind kind) {
  static constexpr std::string_view kNames[] = {"None",  "tensor", "bool",   "int",
                                                "float", "string", "object", "tuple",
                                                "list",  "dict",   "record", "custom"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_container(NodeKind kind) { return kind >= NodeKind::kTuple; }
bool is_keyed(NodeKind kind) { return kind >= NodeKind::kDict; }
bool is_constant(NodeKind kind) { return kind >= NodeKind::kBool && kind <= NodeKind::kOpaque; }

std::vector<std::uint32_t> Tree::children(std::uint32_t node) const {
  std::vector<std::uint32_t> found(at(node).arity);
  std::uint32_t next = node;  // one past the end of the child that is looked for
  for (std::size_t i = found.size(); i-- > 0;) {
    found[i] = next - 1;
    next -= at(next - 1).size;
  }
  return found;
}

std::string Tree::key(std::uint32_t node, std::uint32_t child) const {
  const TreeNode& parent = at(node);
  if (!is_keyed(parent.kind)) return std::to_string(child);
  return strings_[keys_[parent.keys + child]];
}

std::size_t Tree::tensors_in(std::uint32_t node) const {
  const auto first = nodes_.begin() + (node + 1 - at(node).size);
  const auto last = nodes_.begin() + node + 1;
  return static_cast<std::size_t>(
      std::count_if(first, last, [](const TreeNode& n) { return n.kind == NodeKind::kTensor; }));
}

bool Tree::operator==(const Tree& other) const {
  if (nodes_.size() != other.nodes_.size()) return false;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const TreeNode &a = nodes_[i], &b = other.nodes_[i];
    if (a.kind != b.kind || a.arity != b.arity || a.value != b.value) return false;
    if (strings_[a.name] != other.strings_[b.name]) return false;
    if (!is_keyed(a.kind)) continue;
    for (std::uint32_t k = 0; k < a.arity; ++k) {
      if (strings_[keys_[a.keys + k]] != other.strings_[other.keys_[b.keys + k]]) return false;
    }
  }
  return true;
}

std::size_t Tree::hash() const {
  std::size_t seed = nodes_.size();
  const auto mix = [&seed](std::size_t value) {
    seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  };
  for (const TreeNode& node : nodes_) {
    mix(static_cast<std::size_t>(node.kind));
    mix(node.arity);
    mix(static_cast<std::size_t>(node.value));
    mix(std::hash<std::string>{}(strings_[node.name]));
    for (std::uint32_t k = 0; is_keyed(node.kind) && k < node.arity; ++k) {
      mix(std::hash<std::string>{}(strings_[keys_[node.keys + k]]));
    }
  }
  return seed;
}

TreeBuilder::TreeBuilder() { intern(""); }

std::uint32_t TreeBuilder::intern(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(tree_.strings_.size());
  const auto [found, added] = interned_.try_emplace(std::string(text), next);
  if (added) tree_.strings_.emplace_back(text);
  return found->second;
}

void TreeBuilder::push(NodeKind kind, std::uint32_t arity, std::uint32_t name, std::int64_t value) {
  if (arity > roots_.size()) {
    throw Error(ErrorCode::kInvalidInput, "[tree] Expected " + std::to_string(arity) +
                                              " children before a " + std::string(kind_name(kind)) +
                                              ", got " + std::to_string(roots_.size()) + ".");
  }
  std::uint32_t size = 1;
  for (std::uint32_t i = 0; i < arity; ++i) {
    size += tree_.nodes_[roots_.back()].size;
    roots_.pop_back();
  }
  roots_.push_back(static_cast<std::uint32_t>(tree_.nodes_.size()));
  tree_.nodes_.push_back(
      {.kind = kind, .arity = arity, .size = size, .name = name, .keys = 0, .value = value});
}

void TreeBuilder::none() { push(NodeKind::kNone, 0, 0, 0); }
void TreeBuilder::tensor() {
  push(NodeKind::kTensor, 0, 0, static_cast<std::int64_t>(tree_.tensors_++));
}
void TreeBuilder::boolean(bool value) { push(NodeKind::kBool, 0, 0, value ? 1 : 0); }
void TreeBuilder::integer(std::int64_t value) { push(NodeKind::kInt, 0, 0, value); }
void TreeBuilder::number(double value) {
  push(NodeKind::kFloat, 0, 0, std::bit_cast<std::int64_t>(value));
}
void TreeBuilder::text(std::string_view value) { push(NodeKind::kString, 0, intern(value), 0); }
void TreeBuilder::opaque(std::string_view value) { push(NodeKind::kOpaque, 0, intern(value), 0); }
void TreeBuilder::tuple(std::uint32_t arity) { push(NodeKind::kTuple, arity, 0, 0); }
void TreeBuilder::list(std::uint32_t arity) { push(NodeKind::kList, arity, 0, 0); }

void TreeBuilder::keyed(NodeKind kind, std::string_view cls, std::span<const std::string> keys) {
  push(kind, static_cast<std::uint32_t>(keys.size()), intern(cls), 0);
  tree_.nodes_.back().keys = static_cast<std::uint32_t>(tree_.keys_.size());
  for (const std::string& key : keys) tree_.keys_.push_back(intern(key));
}

void TreeBuilder::dict(std::span<const std::string> keys) { keyed(NodeKind::kDict, "", keys); }
void TreeBuilder::record(std::string_view cls, std::span<const std::string> keys) {
  keyed(NodeKind::kRecord, cls, keys);
}
void TreeBuilder::custom(std::string_view cls, std::span<const std::string> keys) {
  keyed(NodeKind::kCustom, cls, keys);
}

void TreeBuilder::copy(const Tree& tree, std::uint32_t node) {
  for (std::uint32_t i = node + 1 - tree.at(node).size; i <= node; ++i) {
    const TreeNode& from = tree.at(i);
    if (from.kind == NodeKind::kTensor) {
      tensor();
    } else if (is_keyed(from.kind)) {
      std::vector<std::string> keys;
      for (std::uint32_t k = 0; k < from.arity; ++k) keys.push_back(tree.key(i, k));
      keyed(from.kind, tree.name(i), keys);
    } else {
      push(from.kind, from.arity, intern(tree.name(i)), from.value);
    }
  }
}

Tree TreeBuilder::finish() {
  if (roots_.size() != 1) {
    throw Error(ErrorCode::kInvalidInput,
                "[tree] Expected one root, got " + std::to_string(roots_.size()) + " subtrees.");
  }
  return std::move(tree_);
}

}  // namespace fairlead
