// Set of the port numbers with pending work. It is iterated in ascending order, without visiting other ports.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace roci {

class PortSet {
 public:
  static constexpr uint16_t kPorts = 1024;

  void insert(uint16_t port) {
    words_[port / 64U] |= uint64_t{1} << (port % 64U);
    full_ |= 1U << (port / 64U);
  }
  // Calls visit(port) for each port and removes those for which it returns false. A port that visit() inserts may or
  // may not be visited.
  template <class Visit>
  void filter(Visit&& visit) {
    for (uint32_t full = full_; full != 0; full &= full - 1) {
      const auto word = static_cast<uint16_t>(std::countr_zero(full));
      for (uint64_t left = words_[word]; left != 0; left &= left - 1) {
        const auto bit = static_cast<uint16_t>(std::countr_zero(left));
        if (!visit(static_cast<uint16_t>(word * 64U + bit))) words_[word] &= ~(uint64_t{1} << bit);
      }
      if (words_[word] == 0) full_ &= ~(1U << word);
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (uint32_t full = full_; full != 0; full &= full - 1) {
      const auto word = static_cast<uint16_t>(std::countr_zero(full));
      for (uint64_t left = words_[word]; left != 0; left &= left - 1)
        visit(static_cast<uint16_t>(word * 64U + static_cast<unsigned>(std::countr_zero(left))));
    }
  }

 private:
  uint32_t full_ = 0;  // bitmap of nonzero words
  std::array<uint64_t, kPorts / 64> words_{};
};

}  // namespace roci
