// Weights that are elsewhere (on another device, with somebody who reads them from a disk): they have
// addresses here, with bytes behind them only while somebody needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fairlead/weights/reserved_memory.h"

namespace fairlead {

class FetchedWeights {
 public:
  // Puts bytes `offset` ... of tensor `number` into the memory.
  using Fetch = std::function<void(std::size_t number, std::int64_t offset, std::span<std::byte>)>;

  // Tensors of so many bytes. Throws Error(kIo) where the system has no addresses left.
  FetchedWeights(const std::vector<std::int64_t>& sizes, Fetch fetch);

  [[nodiscard]] std::span<std::byte> memory() const { return memory_.bytes(); }
  [[nodiscard]] std::int64_t offset(std::size_t number) const { return tensors_.at(number).at; }
  // Whether a tensor of theirs has this address.
  [[nodiscard]] bool holds(const std::byte* at) const { return find(at) != nullptr; }
  // Whether somebody took addresses for numbers: what nobody fetched is zeros.
  [[nodiscard]] bool touched() const;

  // All of them, which stay; one of them, until `forget`.
  void fill();
  void fill(std::size_t number);
  void forget();
  // The bytes from `begin` on, which lie within one tensor, a bounded piece after the other; each is
  // gone when `use` returns, unless all stay.
  void visit(const std::byte* begin, std::int64_t bytes,
             const std::function<void(std::span<const std::byte>)>& use);
  // The same with the whole tensor at once, of which `at` is an address.
  void visit_whole(const std::byte* at, const std::function<void()>& use);

 private:
  struct Tensor {
    std::int64_t at = 0;  // among the addresses
    std::int64_t bytes = 0;
    bool held = false;  // its bytes are there
  };
  [[nodiscard]] const Tensor* find(const std::byte* at) const;
  void fetch(const Tensor& tensor, std::int64_t from, std::int64_t bytes);
  void release(const Tensor& tensor, std::int64_t from, std::int64_t bytes);

  std::vector<Tensor> tensors_;  // by `at`
  Fetch fetch_;
  ReservedMemory memory_;
};

}  // namespace fairlead
