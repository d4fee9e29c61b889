#include "telemetry/endpoint.hpp"

#include <rte_telemetry.h>
#include <rte_version.h>

#include <map>
#include <mutex>

namespace roci {
namespace {

// DPDK 23.03 renamed the unsigned integers and deprecated the old names.
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
constexpr auto kUint = RTE_TEL_UINT_VAL;
constexpr auto add_dict_uint = rte_tel_data_add_dict_uint;
constexpr auto add_array_uint = rte_tel_data_add_array_uint;
#else
constexpr auto kUint = RTE_TEL_U64_VAL;
constexpr auto add_dict_uint = rte_tel_data_add_dict_u64;
constexpr auto add_array_uint = rte_tel_data_add_array_u64;
#endif

// DPDK silently drops entries that exceed its answer of 16 KiB.
constexpr size_t kPageBytes = 12 * 1024;
constexpr size_t kTextBytes = RTE_TEL_MAX_STRING_LEN - 1;

struct Table {
  std::mutex mutex;
  // Empty: the command is registered with DPDK, but has no endpoint.
  std::map<std::string, Endpoint::Handler, std::less<>> handlers;
};

// Never destroyed: DPDK's threads run until the process ends.
Table& table() {
  static auto* const table = new Table;
  return *table;
}

// At most `most` bytes of UTF-8, without truncating within a character.
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// Size in JSON, with quotes, comma and space.
size_t json_size(std::string_view text) {
  size_t size = 4;
  for (const char c : text) size += static_cast<unsigned char>(c) < 0x20 ? 6 : c == '"' || c == '\\' ? 2 : 1;
  return size;
}

void write(const TelemetryMap& map, rte_tel_data* out) {
  rte_tel_data_start_dict(out);
  for (const auto& [name, value] : map) {
    if (const auto* number = std::get_if<uint64_t>(&value)) {
      add_dict_uint(out, name.c_str(), *number);
    } else {
      rte_tel_data_add_dict_string(out, name.c_str(),
                                   shortened(std::get<std::string>(value), kTextBytes).c_str());
    }
  }
}

void write(const TelemetryList& list, rte_tel_data* out) {
  rte_tel_data_start_array(out, RTE_TEL_STRING_VAL);
  for (const std::string& item : telemetry_page(list, 0))
    rte_tel_data_add_array_string(out, shortened(item, kTextBytes).c_str());
}

size_t json_size(uint64_t number) { return std::to_string(number).size() + 1; }

struct Freed {
  void operator()(rte_tel_data* data) const { rte_tel_data_free(data); }
};

void write(const TelemetryTable& table, rte_tel_data* out) {
  write(table.facts, out);
  for (const auto& [name, column] : table.columns()) {
    std::unique_ptr<rte_tel_data, Freed> array(rte_tel_data_alloc());
    if (array == nullptr) return;
    if (const auto* numbers = std::get_if<std::vector<uint64_t>>(&column)) {
      rte_tel_data_start_array(array.get(), kUint);
      for (const uint64_t number : *numbers) add_array_uint(array.get(), number);
    } else {
      rte_tel_data_start_array(array.get(), RTE_TEL_STRING_VAL);
      for (const std::string& text : std::get<std::vector<std::string>>(column))
        rte_tel_data_add_array_string(array.get(), shortened(text, kTextBytes).c_str());
    }
    // DPDK frees the array after the answer.
    if (rte_tel_data_add_dict_container(out, name.c_str(), array.get(), 0) == 0)
      static_cast<void>(array.release());
  }
}

int answer(const char* command, const char* parameters, rte_tel_data* out) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.handlers.find(std::string_view{command});
  if (found == all.handlers.end() || !found->second) {
    rte_tel_data_string(out, "this endpoint was removed");
    return 0;
  }
  const auto result = found->second(parameters == nullptr ? "" : parameters);
  if (!result) {
    rte_tel_data_string(out, result.error().message.c_str());
  } else {
    std::visit([out](const auto& value) { write(value, out); }, *result);
  }
  return 0;
}

}  // namespace

TelemetryList telemetry_page(const TelemetryList& all, size_t first) {
  TelemetryList page;
  size_t bytes = 0;
  for (size_t i = first; i < all.size() && page.size() < RTE_TEL_MAX_ARRAY_ENTRIES; ++i) {
    bytes += json_size(shortened(all[i], kTextBytes));
    if (bytes > kPageBytes) break;
    page.push_back(all[i]);
  }
  return page;
}

bool TelemetryTable::add(std::span<const TelemetryMap> rows) {
  size_t bytes = bytes_;
  if (rows_ == 0 && !rows.empty()) {
    for (const auto& [name, value] : facts) bytes += name.size() + kTextBytes;
    for (const auto& [name, value] : rows.front())
      bytes += name.size() + 6;  // quotes, brackets, a colon, a comma
  }
  for (const TelemetryMap& row : rows) {
    for (const auto& [name, value] : row)
      bytes += std::visit([](const auto& v) { return json_size(v); }, value);
  }
  if (bytes > kPageBytes || rows_ + rows.size() > RTE_TEL_MAX_ARRAY_ENTRIES) return false;
  for (const TelemetryMap& row : rows) append(row);
  bytes_ = bytes;
  return true;
}

void TelemetryTable::append(const TelemetryMap& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    std::visit(
        [&](const auto& value) {
          using Values = std::vector<std::decay_t<decltype(value)>>;
          if (rows_ == 0) columns_.emplace_back(row[i].first, Values{});
          std::get<Values>(columns_[i].second).push_back(value);
        },
        row[i].second);
  }
  ++rows_;
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(std::string command, const std::string& help,
                                                 Handler handler) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.handlers.find(command);
  if (found != all.handlers.end() && found->second)
    return fail("the telemetry endpoint " + command + " is already registered", EEXIST);
  if (found == all.handlers.end()) {
    const int error = rte_telemetry_register_cmd(command.c_str(), answer, help.c_str());
    if (error != 0)
      return fail("DPDK rejects the telemetry endpoint '" + command + "'; it must start with / and be short",
                  -error);
  }
  all.handlers[command] = std::move(handler);
  return std::unique_ptr<Endpoint>{new Endpoint{std::move(command)}};
}

Endpoint::~Endpoint() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.handlers[command_] = nullptr;
}

}  // namespace roci
