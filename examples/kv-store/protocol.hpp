// What goes between the two sides: greetings over TCP, requests and answers as SENDs.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "table.hpp"

namespace kv {

inline constexpr uint32_t kMagic = 0x6b763031;  // "kv01": one layout of everything below and of the table

// What a queue pair must know of its peer.
struct Endpoint {
  ibv_gid gid;
  uint32_t qp_num;
  uint32_t psn;
  uint32_t mtu;  // ibv_mtu; the smaller one of both is used
};

// The client speaks first. The server's answer comes when its queue pair is ready.
struct ClientHello {
  uint32_t magic;
  Endpoint endpoint;
};
struct ServerHello {
  uint32_t magic;
  uint32_t refused;  // an errno; 0: come in
  Endpoint endpoint;
  uint32_t rkey;
  uint64_t table;    // address of the first bucket
  uint64_t buckets;  // a power of two
};

enum class Operation : uint32_t { kPut, kRemove };

// Followed by the key and the value.
struct Request {
  Operation operation;
  uint32_t id;  // comes back in the answer
  uint32_t key_length;
  uint32_t value_length;
};
struct Answer {
  Status status;
  uint32_t id;
};

inline constexpr size_t kMaxRequest = sizeof(Request) + kMaxKey + kMaxValue;
// Requests that a client may have under way: the server has a receive posted for each.
inline constexpr uint32_t kCredits = 8;

static_assert(std::is_trivially_copyable_v<ServerHello> && std::is_trivially_copyable_v<ClientHello>);

}  // namespace kv
