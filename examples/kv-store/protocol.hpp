// Messages between client and server: greetings over TCP, requests and answers as SENDs.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "table.hpp"

namespace kv {

inline constexpr uint32_t kMagic = 0x6b763031;  // "kv01": version of the messages and of the table layout

// The parameters of a queue pair that its peer needs.
struct Endpoint {
  ibv_gid gid;
  uint32_t qp_num;
  uint32_t psn;
  uint32_t mtu;  // ibv_mtu; the smaller value of both sides is used
};

// The client sends first. The server answers when its queue pair is ready.
struct ClientHello {
  uint32_t magic;
  Endpoint endpoint;
};
struct ServerHello {
  uint32_t magic;
  uint32_t refused;  // an errno; 0: accepted
  Endpoint endpoint;
  uint32_t rkey;
  uint64_t table;    // address of the first bucket
  uint64_t buckets;  // a power of two
};

enum class Operation : uint32_t { kPut, kRemove };

// Followed by the key and the value.
struct Request {
  Operation operation;
  uint32_t id;  // returned in the answer
  uint32_t key_length;
  uint32_t value_length;
};
struct Answer {
  Status status;
  uint32_t id;
};

inline constexpr size_t kMaxRequest = sizeof(Request) + kMaxKey + kMaxValue;
// Maximum of outstanding requests per client: the server has a receive posted for each.
inline constexpr uint32_t kCredits = 8;

static_assert(std::is_trivially_copyable_v<ServerHello> && std::is_trivially_copyable_v<ClientHello>);

}  // namespace kv
