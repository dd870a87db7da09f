// A nested structure of tensors and constants as a post-order vector of small nodes.
//
// Example: {"x": tensor, "y": [tensor, None]} is the nodes  tensor  tensor none list(2)  dict(x,
// y). Children come before their parent; the root is the last node. Tensors are numbered in the
// order they appear. A tree never changes after it is built; building and walking are linear in the
// number of nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fairlead {

enum class NodeKind : std::uint8_t {
  kNone,    // absent
  kTensor,  // value: number of the tensor
  kBool,    // value: 0 or 1
  kInt,     // value
  kFloat,   // value: bits of the double
  kString,  // name: the text
  kOpaque,  // name: text that is equal where the objects are (a dtype, an array's digest)
  kTuple,
  kList,
  kDict,    // aligned by key
  kRecord,  // name: class; a dataclass or model output, aligned by field
  kCustom,  // name: class; a cache or registered class, aligned by key
};
static_assert(static_cast<int>(NodeKind::kCustom) == 11);

[[nodiscard]] std::string_view kind_name(NodeKind kind);
[[nodiscard]] bool is_container(NodeKind kind);  // kTuple and what follows
[[nodiscard]] bool is_keyed(NodeKind kind);      // kDict and what follows
[[nodiscard]] bool is_constant(NodeKind kind);   // kBool to kOpaque

struct TreeNode {
  NodeKind kind = NodeKind::kNone;
  std::uint32_t arity = 0;  // children
  std::uint32_t size = 1;   // nodes of this subtree, itself included
  std::uint32_t name = 0;   // string id, see NodeKind
  std::uint32_t keys = 0;   // first of `arity` string ids, where the kind is keyed
  std::int64_t value = 0;   // see NodeKind
};

class Tree {
 public:
  [[nodiscard]] std::span<const TreeNode> nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t root() const { return static_cast<std::uint32_t>(nodes_.size()) - 1; }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] const TreeNode& at(std::uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] std::size_t tensor_count() const { return tensors_; }

  [[nodiscard]] std::vector<std::uint32_t> children(std::uint32_t node) const;
  // The key of a child; the index as text for tuples and lists.
  [[nodiscard]] std::string key(std::uint32_t node, std::uint32_t child) const;
  [[nodiscard]] std::string_view name(std::uint32_t node) const { return strings_[at(node).name]; }
  // Tensors in the subtree, and the number of the first.
  [[nodiscard]] std::size_t tensors_in(std::uint32_t node) const;

  // Equal kinds, keys, class names and constants.
  [[nodiscard]] bool operator==(const Tree& other) const;
  [[nodiscard]] std::size_t hash() const;

 private:
  friend class TreeBuilder;
  std::vector<TreeNode> nodes_;
  std::vector<std::uint32_t> keys_;
  std::vector<std::string> strings_;
  std::size_t tensors_ = 0;
};

// Children first, then their container: b.tensor(); b.tensor(); b.list(2); b.dict({"x"}).
class TreeBuilder {
 public:
  TreeBuilder();
  void none();
  void tensor();
  void boolean(bool value);
  void integer(std::int64_t value);
  void number(double value);
  void text(std::string_view value);
  void opaque(std::string_view value);
  void tuple(std::uint32_t arity);
  void list(std::uint32_t arity);
  void dict(std::span<const std::string> keys);
  void record(std::string_view cls, std::span<const std::string> keys);
  void custom(std::string_view cls, std::span<const std::string> keys);
  // Copies a subtree of another tree; its tensors get the next numbers.
  void copy(const Tree& tree, std::uint32_t node);

  // Error kInvalidInput unless exactly one root was built.
  [[nodiscard]] Tree finish();

 private:
  std::uint32_t intern(std::string_view text);
  void push(NodeKind kind, std::uint32_t arity, std::uint32_t name, std::int64_t value);
  void keyed(NodeKind kind, std::string_view cls, std::span<const std::string> keys);

  Tree tree_;
  std::vector<std::uint32_t> roots_;  // finished subtrees that have no parent yet
  std::unordered_map<std::string, std::uint32_t> interned_;
};

// The dotted path of every tensor: "past_key_values.0.key". A key that starts with '@' takes no
// part in paths: the two halves of an encoder-decoder cache are told apart by such keys.
[[nodiscard]] std::vector<std::string> tensor_paths(const Tree& tree);

// dict(x: T0, y: [T1, None], n: 3)
[[nodiscard]] std::string to_text(const Tree& tree);
[[nodiscard]] std::string to_text(const Tree& tree, std::uint32_t node);

}  // namespace fairlead
