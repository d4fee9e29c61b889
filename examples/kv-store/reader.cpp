#include "reader.hpp"

namespace kv {
namespace {

bool is_whole(const Entry& entry) {
  if (entry.version == 0) return true;  // never written
  if (entry.version % 2 != 0 || entry.key_length > kMaxKey || entry.value_length > kMaxValue) return false;
  return entry.checksum == checksum_of(entry);
}

}  // namespace

Found find(const Bucket& copy, std::string_view key, std::string& value) {
  bool changing = false;
  for (const Entry& entry : copy.entries) {
    if (!is_whole(entry)) {
      changing = true;  // it may contain the key
    } else if (entry.version != 0 && std::string_view(entry.key.data(), entry.key_length) == key) {
      value.assign(entry.value.data(), entry.value_length);
      return Found::kValue;
    }
  }
  return changing ? Found::kChanging : Found::kMissing;
}

}  // namespace kv
