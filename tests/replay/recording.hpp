// A capture of reliable connections, taken apart: for each connection and each of its two directions, what a
// requester sent and what the responder, somebody else's stack, answered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/packet.hpp"

namespace roci::test {

struct RecordedFrame {
  int number = 0;  // in the file, from 1
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
  std::vector<RecordedFrame> frames;

  [[nodiscard]] const Packet& first_request() const;
  [[nodiscard]] const Packet& first_answer() const;
  // Payload bytes of a full packet; `otherwise` when no message had two.
  [[nodiscard]] uint32_t path_mtu(uint32_t otherwise) const;
};

// Everything in tests/pcaps/NAME.pcap. Throws std::runtime_error when the file cannot be read.
std::vector<RecordedFrame> load_frames(const std::string& name);

// Reads tests/pcaps/NAME.pcap. One connection is what shares two addresses and a UDP source port: Linux uses one port
// for both directions (linux-rxe.md §1). Directions without an answer are left out, and so is everything but RC.
// Throws std::runtime_error when the file cannot be read or the frames do not fit together.
std::vector<Exchange> load_exchanges(const std::string& name);

// "RC_ACK 1001 60": opcode, PSN, and the syndrome in hexadecimal when there is one. How the exceptions name answers.
std::string answer_line(const Packet& packet);

}  // namespace roci::test
