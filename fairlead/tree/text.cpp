// Paths and text of trees.
#include <bit>
#include <sstream>

#include "fairlead/tree/tree.h"

namespace fairlead {
namespace {

void add_paths(const Tree& tree, std::uint32_t node, const std::string& prefix,
               std::vector<std::string>& paths) {
  const TreeNode& at = tree.at(node);
  if (at.kind == NodeKind::kTensor) paths.push_back(prefix);
  if (!is_container(at.kind)) return;
  const auto children = tree.children(node);
  for (std::uint32_t i = 0; i < children.size(); ++i) {
    const std::string key = tree.key(node, i);
    const bool shown = !key.starts_with('@');
    add_paths(tree, children[i],
              !shown           ? prefix
              : prefix.empty() ? key
                               : prefix + "." + key,
              paths);
  }
}

void write(const Tree& tree, std::uint32_t node, std::ostream& out) {
  const TreeNode& at = tree.at(node);
  switch (at.kind) {
    case NodeKind::kNone:
      out << "None";
      return;
    case NodeKind::kTensor:
      out << 'T' << at.value;
      return;
    case NodeKind::kBool:
      out << (at.value != 0 ? "True" : "False");
      return;
    case NodeKind::kInt:
      out << at.value;
      return;
    case NodeKind::kFloat:
      out << std::bit_cast<double>(at.value);
      return;
    case NodeKind::kString:
      out << '\'' << tree.name(node) << '\'';
      return;
    case NodeKind::kOpaque:
      out << tree.name(node);
      return;
    default:
      break;
  }
  const auto children = tree.children(node);
  const bool square = at.kind == NodeKind::kList;
  if (at.kind == NodeKind::kDict) out << "dict";
  if (at.kind == NodeKind::kRecord || at.kind == NodeKind::kCustom) out << tree.name(node);
  out << (square ? '[' : '(');
  for (std::uint32_t i = 0; i < children.size(); ++i) {
    if (i > 0) out << ", ";
    if (is_keyed(at.kind)) out << tree.key(node, i) << ": ";
    write(tree, children[i], out);
  }
  if (at.kind == NodeKind::kTuple && at.arity == 1) out << ',';
  out << (square ? ']' : ')');
}

}  // namespace

std::vector<std::string> tensor_paths(const Tree& tree) {
  std::vector<std::string> paths;
  paths.reserve(tree.tensor_count());
  if (!tree.empty()) add_paths(tree, tree.root(), "", paths);
  return paths;
}

std::string to_text(const Tree& tree, std::uint32_t node) {
  std::ostringstream out;
  write(tree, node, out);
  return out.str();
}

std::string to_text(const Tree& tree) { return tree.empty() ? "" : to_text(tree, tree.root()); }

}  // namespace fairlead
