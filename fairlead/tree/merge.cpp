// The rules of merge.h, applied from the root down; the result is built children first.
#include "fairlead/tree/merge.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace fairlead {
namespace {

constexpr std::uint32_t kAbsent = UINT32_MAX;

std::string describe(const Tree& tree, std::uint32_t node) {
  if (node == kAbsent) return "absent";
  const TreeNode& at = tree.at(node);
  if (is_constant(at.kind)) return to_text(tree, node);
  switch (at.kind) {
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kDict:
      return std::string(kind_name(at.kind)) + " of " + std::to_string(at.arity);
    case NodeKind::kRecord:
    case NodeKind::kCustom:
      return std::string(tree.name(node)) + " of " + std::to_string(at.arity);
    default:
      return std::string(kind_name(at.kind));
  }
}

class Merger {
 public:
  Merger(const Tree& left, const Tree& right, const std::vector<std::string>& root_order)
      : left_(left), right_(right), order_(root_order) {
    result_.left.assign(left.tensor_count(), -1);
    result_.right.assign(right.tensor_count(), -1);
  }

  Merge run() {
    visit(left_.root(), right_.root(), "");
    result_.tree = builder_.finish();
    return std::move(result_);
  }

 private:
  // Nothing to lose: no tensor and no constant in it (rule 1).
  static bool missing(const Tree& tree, std::uint32_t node) {
    if (node == kAbsent) return true;
    const auto nodes = tree.nodes().subspan(node + 1 - tree.at(node).size, tree.at(node).size);
    return std::all_of(nodes.begin(), nodes.end(), [](const TreeNode& n) {
      return n.kind == NodeKind::kNone || is_container(n.kind);
    });
  }

  // Takes one side whole; its tensors get the next slots.
  void take(const Tree& tree, std::uint32_t node, std::vector<std::int32_t>& slots) {
    for (std::uint32_t i = node + 1 - tree.at(node).size; i <= node; ++i) {
      if (tree.at(i).kind == NodeKind::kTensor)
        slots[static_cast<std::size_t>(tree.at(i).value)] = next_++;
    }
    builder_.copy(tree, node);
  }

  static bool constant_or_missing(const Tree& tree, std::uint32_t node) {
    return node == kAbsent || is_constant(tree.at(node).kind) ||
           tree.at(node).kind == NodeKind::kNone;
  }

  void mismatch(const std::string& path, std::uint32_t a, std::uint32_t b) {
    const bool constants = constant_or_missing(left_, a) && constant_or_missing(right_, b);
    result_.mismatches.push_back({path, describe(left_, a), describe(right_, b), constants});
    a != kAbsent ? take(left_, a, result_.left) : take(right_, b, result_.right);
  }

  // A constant that one side does not have is not filled in: the model would run with another value
  // there.
  bool lonely_constant(std::uint32_t a, std::uint32_t b) const {
    const bool ours = a != kAbsent && is_constant(left_.at(a).kind);
    const bool theirs = b != kAbsent && is_constant(right_.at(b).kind);
    return ours != theirs && constant_or_missing(left_, a) && constant_or_missing(right_, b);
  }

  bool same_constant(std::uint32_t a, std::uint32_t b) const {
    const TreeNode &x = left_.at(a), &y = right_.at(b);
    return x.kind == y.kind && x.value == y.value && left_.name(a) == right_.name(b);
  }

  void visit(std::uint32_t a, std::uint32_t b, const std::string& path) {
    if (lonely_constant(a, b)) return mismatch(path, a, b);
    if (missing(right_, b) && a != kAbsent) {
      // Of two missing ones the container says more than None, and the larger container more than
      // the empty one.
      const bool more = b != kAbsent && missing(left_, a) && right_.at(b).size > left_.at(a).size;
      return more ? take(right_, b, result_.right) : take(left_, a, result_.left);
    }
    if (missing(left_, a)) return take(right_, b, result_.right);
    const TreeNode &x = left_.at(a), &y = right_.at(b);
    if (x.kind == NodeKind::kTensor && y.kind == NodeKind::kTensor) {
      result_.left[static_cast<std::size_t>(x.value)] = next_;
      result_.right[static_cast<std::size_t>(y.value)] = next_++;
      return builder_.tensor();
    }
    if (x.kind != y.kind || !is_container(x.kind)) {
      return same_constant(a, b) ? builder_.copy(left_, a) : mismatch(path, a, b);
    }
    if (left_.name(a) != right_.name(b)) return mismatch(path, a, b);
    if (is_keyed(x.kind)) return keyed(a, b, path);
    if (x.arity != y.arity) return mismatch(path, a, b);
    const auto ours = left_.children(a), theirs = right_.children(b);
    for (std::uint32_t i = 0; i < x.arity; ++i)
      visit(ours[i], theirs[i], join(path, std::to_string(i)));
    x.kind == NodeKind::kTuple ? builder_.tuple(x.arity) : builder_.list(x.arity);
  }

  void keyed(std::uint32_t a, std::uint32_t b, const std::string& path) {
    const auto ours = left_.children(a), theirs = right_.children(b);
    std::vector<std::string> keys;
    std::unordered_map<std::string, std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t i = 0; i < ours.size(); ++i) {
      keys.push_back(left_.key(a, i));
      pairs.try_emplace(keys.back(), ours[i], kAbsent);
    }
    for (std::uint32_t i = 0; i < theirs.size(); ++i) {
      std::string key = right_.key(b, i);
      const auto [found, added] = pairs.try_emplace(key, kAbsent, theirs[i]);
      if (!added) {
        found->second.second = theirs[i];
      } else {
        keys.push_back(std::move(key));
      }
    }
    if (path.empty() && !order_.empty()) sort_root(keys);
    for (const std::string& key : keys) {
      const auto [first, second] = pairs.at(key);
      visit(first, second, key.starts_with('@') ? path : join(path, key));
    }
    const NodeKind kind = left_.at(a).kind;
    if (kind == NodeKind::kDict) return builder_.dict(keys);
    kind == NodeKind::kRecord ? builder_.record(left_.name(a), keys)
                              : builder_.custom(left_.name(a), keys);
  }

  void sort_root(std::vector<std::string>& keys) const {
    const auto rank = [this](const std::string& key) {
      return std::find(order_.begin(), order_.end(), key);
    };
    std::stable_sort(keys.begin(), keys.end(), [&rank](const std::string& x, const std::string& y) {
      return rank(x) < rank(y);
    });
  }

  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  const Tree& left_;
  const Tree& right_;
  const std::vector<std::string>& order_;
  TreeBuilder builder_;
  Merge result_;
  std::int32_t next_ = 0;
};

}  // namespace

Merge merge(const Tree& left, const Tree& right, const std::vector<std::string>& root_order) {
  return Merger(left, right, root_order).run();
}

}  // namespace fairlead
