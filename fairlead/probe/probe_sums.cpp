// Groups that are the sum of others: a mask as long as past and sequence together.
#include <algorithm>

#include "fairlead/probe/probe_impl.h"

namespace fairlead {

// Whole groups first; then what may be as large as the rest of its group by chance only, such as a
// mask as long as there are heads.
std::vector<Prober::SumGuess> Prober::sums_with(std::size_t g) const {
  std::vector<SumGuess> whole, parts;
  for (std::size_t s = 0; s < groups_.size(); ++s) {
    if (s == g || groups_[s].sum_of[0] >= 0 || groups_[s].base <= groups_[g].base) continue;
    for (std::size_t t = 0; t < groups_.size(); ++t) {
      if (t == g || t == s || groups_[t].sum_of[0] >= 0) continue;
      if (groups_[s].base != groups_[g].base + groups_[t].base) continue;
      whole.push_back({s, static_cast<int>(t), groups_[s].places});
      const auto alike = by_axis_and_rank(groups_[s].places);
      if (groups_[s].pinned || alike.size() < 2) continue;
      for (const auto& places : alike) parts.push_back({s, static_cast<int>(t), places});
    }
  }
  whole.insert(whole.end(), parts.begin(), parts.end());
  return whole;
}

// As large as the group and a dimension that does not vary: a mask as long as the past and the one
// token of a program for one token.
std::vector<Prober::SumGuess> Prober::sums_with_fixed(std::size_t g) const {
  std::vector<SumGuess> whole, parts;
  for (std::size_t s = 0; s < groups_.size(); ++s) {
    if (s == g || groups_[s].sum_of[0] >= 0 || in_sum(s)) continue;
    if (!fixed_sizes_.contains(groups_[s].base - groups_[g].base)) continue;
    whole.push_back({s, -1, groups_[s].places});
    const auto alike = by_axis_and_rank(groups_[s].places);
    if (groups_[s].pinned || alike.size() < 2) continue;
    for (const auto& places : alike) parts.push_back({s, -1, places});
  }
  whole.insert(whole.end(), parts.begin(), parts.end());
  return whole;
}

// The places of the group that are not in the sum become a group at the end of the list.
void Prober::suppose(const SumGuess& guess, std::size_t g) {
  if (guess.places.size() < groups_[guess.sum].places.size()) {
    Group rest = groups_[guess.sum];
    std::erase_if(rest.places, [&](const Place& p) { return contains(guess.places, p); });
    groups_[guess.sum].places = guess.places;
    groups_.push_back(std::move(rest));
    supposed_rest_ = true;
  } else {
    supposed_rest_ = false;
  }
  set_sum(guess.sum, static_cast<int>(g), guess.other);
}

void Prober::take_back(const SumGuess& guess) {
  clear_sum(guess.sum);
  if (!supposed_rest_) return;
  auto& places = groups_[guess.sum].places;
  places.insert(places.end(), groups_.back().places.begin(), groups_.back().places.end());
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.leaf != b.leaf ? a.leaf < b.leaf : a.axis < b.axis;
  });
  groups_.pop_back();
}

void Prober::set_sum(std::size_t s, int a, int b) {
  groups_[s].sum_of[0] = a;
  groups_[s].sum_of[1] = b;
  groups_[s].sum_more = groups_[s].base - groups_[a].base - (b >= 0 ? groups_[b].base : 0);
}

void Prober::clear_sum(std::size_t s) {
  groups_[s].sum_of[0] = groups_[s].sum_of[1] = -1;
  groups_[s].sum_more = 0;
}

bool Prober::in_sum(std::size_t g) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& sum) {
    return sum.sum_of[0] == static_cast<int>(g) || sum.sum_of[1] == static_cast<int>(g);
  });
}

Task<bool> Prober::explore_sums(std::size_t g, bool upward) {
  std::string ignored;
  // A sum that is known already, whose other part turned out to be this group and not its namesake.
  for (Group& sum : groups_) {
    if (sum.sum_of[0] < 0) continue;
    for (int& part : sum.sum_of) {
      if (part < 0 || part == static_cast<int>(g) || groups_[part].dynamic) continue;
      if (groups_[part].base != groups_[g].base) continue;
      const int before = part;
      part = static_cast<int>(g);
      if (co_await follows(groups_[g], upward)) co_return true;
      part = before;
    }
  }
  std::vector<SumGuess> guesses = sums_with(g);
  const std::vector<SumGuess> more = sums_with_fixed(g);
  guesses.insert(guesses.end(), more.begin(), more.end());
  for (const SumGuess& guess : guesses) {
    const std::size_t s = guess.sum;
    const int t = guess.other;
    const std::size_t mark = kept_.size();
    const bool was_dynamic = groups_[s].dynamic;
    suppose(guess, g);
    // A part that moved alone before must move with the sum as well.
    bool moved = co_await follows(groups_[g], upward);
    if (moved && t >= 0 && groups_[t].dynamic) {
      moved = co_await moves_either_way(groups_[t], ignored);
    }
    if (moved) {
      groups_[s].dynamic = true;
      drop_runs_that_break(s);
      co_return true;
    }
    kept_.resize(mark);
    take_back(guess);
    groups_[s].dynamic = was_dynamic;
  }
  co_return false;
}

Task<bool> Prober::follows(Group& group, bool upward) {
  std::string ignored;
  bool moved = false;
  if (upward) {
    moved = co_await moves(group, up(group, group.base), ignored, true);
  } else {
    moved = co_await moves_either_way(group, ignored);
  }
  co_return moved;
}

// Runs in which the sum did not hold say nothing about the symbols that remain.
void Prober::drop_runs_that_break(std::size_t s) {
  std::erase_if(kept_, [&](const Kept& kept) {
    return size_in(kept.sizes, groups_[s]) != sum_in(kept.sizes, groups_[s]);
  });
}

// Places that are as large as a sum by chance only move alone, and the sum moves without them.
Task<void> Prober::split_sum(std::size_t s) {
  const std::vector<std::vector<Place>> ways[] = {by_axis(groups_[s].places), units(groups_[s])};
  for (const auto& parts : ways) {
    for (const auto& places : parts) {
      const Group before = groups_[s];
      const std::size_t mark = kept_.size();
      Group part = before;
      part.places = places;
      part.sum_of[0] = part.sum_of[1] = -1;
      part.sum_more = 0;
      std::erase_if(groups_[s].places, [&](const Place& p) { return contains(places, p); });
      if (groups_[s].places.empty() || groups_[s].places.size() == before.places.size()) {
        groups_[s].places = before.places;
        continue;
      }
      Group of = groups_[before.sum_of[0]];
      std::string ignored;
      visible_ = false;
      bool moved = co_await moves(part, up(part, part.base), ignored);
      moved = moved && visible_;
      if (moved) moved = co_await moves(of, up(of, of.base), ignored);
      if (moved) {
        groups_.push_back(std::move(part));
      } else {
        groups_[s].places = before.places;
        kept_.resize(mark);
      }
    }
  }
}

}  // namespace fairlead
