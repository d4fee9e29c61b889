// Hash table from 32-bit ids to objects, for lookups on the data path: one multiplication and almost always one cache
// line, which can be prefetched. The ids are random numbers, so no stronger hash is needed. The table grows by doubling
// and is at most half full.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace roci {

// Modified and read only by the owner of the objects.
template <class T>
class IdTable {
 public:
  IdTable() : slots_(kInitial) {}

  // Returns false if the id is in use.
  bool insert(uint32_t id, T* object) {
    if (find(id) != nullptr) return false;
    if (2 * (count_ + 1) > slots_.size()) grow();
    place(id, object);
    ++count_;
    return true;
  }

  [[nodiscard]] T* find(uint32_t id) const {
    for (size_t i = home(id);; i = next(i)) {
      const Slot& slot = slots_[i];
      if (slot.object == nullptr) return nullptr;
      if (slot.id == id) return slot.object;
    }
  }

  // Returns the removed object, or null.
  T* erase(uint32_t id) {
    size_t hole = home(id);
    while (slots_[hole].object != nullptr && slots_[hole].id != id) hole = next(hole);
    T* const removed = slots_[hole].object;
    if (removed == nullptr) return nullptr;
    // Closes the gap, because lookups stop at the first empty slot (Knuth 6.4, algorithm R).
    for (size_t i = next(hole); slots_[i].object != nullptr; i = next(i)) {
      const size_t wanted = home(slots_[i].id);
      if (((i - wanted) & mask()) >= ((i - hole) & mask())) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = Slot{};
    --count_;
    return removed;
  }

  void prefetch(uint32_t id) const { __builtin_prefetch(&slots_[home(id)]); }
  [[nodiscard]] size_t size() const { return count_; }

  // Iteration over all objects in parts; the owner may change the table between two parts. Objects that are in the
  // table during the whole iteration are visited exactly once, unless the table grows: then the iteration restarts.
  class Walk {
   public:
    [[nodiscard]] bool started() const { return slots_ != 0; }

   private:
    friend class IdTable;
    size_t slots_ = 0;  // of the table; 0: not started
    size_t at_ = 0;     // the next slot
    size_t left_ = 0;   // remaining slots
  };
  // Visits at least `most` slots. Returns false at the end of the table. A part ends at an empty slot: erasures in the
  // visited part then move no object from the unvisited part into it.
  template <class F>
  bool walk(Walk& walk, size_t most, F&& visit) const {  // visit(uint32_t id, T& object)
    if (walk.slots_ != slots_.size()) {
      walk.slots_ = walk.left_ = slots_.size();
      walk.at_ = 0;
      while (slots_[walk.at_].object != nullptr) walk.at_ = next(walk.at_);
    }
    for (size_t done = 0; walk.left_ > 0; ++done, --walk.left_, walk.at_ = next(walk.at_)) {
      const Slot& slot = slots_[walk.at_];
      if (slot.object != nullptr) {
        visit(slot.id, *slot.object);
      } else if (done >= most) {
        return true;
      }
    }
    return false;
  }

  template <class F>
  void for_each(F&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.object != nullptr) visit(slot.id, *slot.object);
    }
  }

 private:
  static constexpr size_t kInitial = 64;
  struct Slot {
    T* object = nullptr;
    uint32_t id = 0;
  };

  [[nodiscard]] size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] size_t home(uint32_t id) const { return (id * 0x9e3779b97f4a7c15ULL >> 32) & mask(); }
  [[nodiscard]] size_t next(size_t i) const { return (i + 1) & mask(); }
  void place(uint32_t id, T* object) {
    size_t i = home(id);
    while (slots_[i].object != nullptr) i = next(i);
    slots_[i] = {object, id};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.object != nullptr) place(slot.id, slot.object);
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace roci
