// Parsed capture of reliable connections: for each connection and direction, the packets of the requester and the
// responses of the other stack's responder.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wire/roce/packet.hpp"

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

// Path MTU of an Ethernet with MTU 1500, if no packet shows it.
inline constexpr uint32_t kUsualMtu = 1024;

// The requests to one queue pair and its responses, in the order of the capture.
struct Exchange {
  std::string capture;  // "send" for send.pcap
  Qpn responder, requester;
  bool managed = false;  // connected by the communication manager, which chooses the UDP source port
  std::vector<RecordedFrame> frames;

  [[nodiscard]] const Packet& first_request() const;
  [[nodiscard]] const Packet& first_answer() const;
  // Payload bytes of a full packet; `otherwise` if no message had two packets.
  [[nodiscard]] uint32_t path_mtu(uint32_t otherwise) const;
};

// All frames of tests/pcaps/NAME.pcap. Throws std::runtime_error if the file cannot be read.
std::vector<RecordedFrame> load_frames(const std::string& name);

// Reads tests/pcaps/NAME.pcap. A connection is identified by two addresses and a UDP source port: Linux uses one port
// for both directions. Other services than RC are omitted, and directions without a response, except with kToo.
// Throws std::runtime_error if the file cannot be read or the frames are inconsistent.
enum class Unanswered : uint8_t { kLeaveOut, kToo };
std::vector<Exchange> load_exchanges(const std::string& name, Unanswered unanswered = Unanswered::kLeaveOut);

// Names of all captures with a request of a reliable connection.
std::set<std::string> captures_of_reliable_connections();

// The sender's queue pair number if the capture has no packet to it: the first of 1000 numbers for which Linux uses
// the recorded UDP source port (Linux counts up from 17).
Qpn find_sender(const Packet& packet);

bool icrc_is_right(const Packet& packet);

// "RC_ACK 1001 60": opcode, PSN, and the syndrome in hexadecimal if present. Identifies responses in the tables.
std::string answer_line(const Packet& packet);

}  // namespace roci::test
