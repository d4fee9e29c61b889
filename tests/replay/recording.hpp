// A capture of reliable connections, taken apart: for each connection and each of its two directions, what a
// requester sent and what the responder, somebody else's stack, answered.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wire/packet.hpp"

namespace roci::test {

struct RecordedFrame {
  int number = 0;  // in the file, from 1
  Nanos at{0};     // since the first frame of the file
  ByteVector bytes;
  Packet packet;
  [[nodiscard]] const OpcodeInfo& info() const {
    return *find_opcode(static_cast<uint8_t>(packet.bth.opcode));
  }
  [[nodiscard]] bool is_request() const { return info().is_request(); }
};

// The requests to one queue pair and its answers, in the order of the capture.
struct Exchange {
  std::string capture;  // "send" of send.pcap
  Qpn responder, requester;
  bool managed = false;  // made by the communication manager, which chooses the UDP source port
  std::vector<RecordedFrame> frames;

  [[nodiscard]] const Packet& first_request() const;
  [[nodiscard]] const Packet& first_answer() const;
  // Payload bytes of a full packet; `otherwise` when no message had two.
  [[nodiscard]] uint32_t path_mtu(uint32_t otherwise) const;
};

// Everything in tests/pcaps/NAME.pcap. Throws std::runtime_error when the file cannot be read.
std::vector<RecordedFrame> load_frames(const std::string& name);

// Reads tests/pcaps/NAME.pcap. One connection is what shares two addresses and a UDP source port: Linux uses one port
// for both directions. Directions without an answer are left out unless asked for, and so is everything but RC.
// Throws std::runtime_error when the file cannot be read or the frames do not fit together.
enum class Unanswered : uint8_t { kLeaveOut, kToo };
std::vector<Exchange> load_exchanges(const std::string& name, Unanswered unanswered = Unanswered::kLeaveOut);

// The names of all captures that hold a request of a reliable connection.
std::set<std::string> captures_of_reliable_connections();

// The sender's queue pair number when the capture holds no packet to it: the one that makes the recorded UDP source
// port, among the first thousand (Linux counts up from 17).
Qpn find_sender(const Packet& packet);

bool icrc_is_right(const Packet& packet);

// "RC_ACK 1001 60": opcode, PSN, and the syndrome in hexadecimal when there is one. How the exceptions name answers.
std::string answer_line(const Packet& packet);

}  // namespace roci::test
