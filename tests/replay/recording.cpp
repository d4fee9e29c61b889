#include "replay/recording.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "wire/mad/capability_mad.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci::test {

std::vector<RecordedFrame> load_frames(const std::string& name) {
  const std::string path = std::string(ROCI_SOURCE_DIR) + "/tests/pcaps/" + name + ".pcap";
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(path.c_str(), why.data()),
                                                            &pcap_close);
  if (!file) throw std::runtime_error(why.data());
  std::vector<RecordedFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int outcome = 0;
  std::optional<Nanos> start;
  for (int number = 1; (outcome = pcap_next_ex(file.get(), &header, &data)) == 1; ++number) {
    const Nanos stamp =
        std::chrono::seconds(header->ts.tv_sec) + std::chrono::microseconds(header->ts.tv_usec);
    if (!start) start = stamp;
    RecordedFrame frame{number, stamp - *start, ByteVector(data, data + header->caplen), {}};
    auto packet = decode_packet(frame.bytes);
    if (!packet)
      throw std::runtime_error(path + ", frame " + std::to_string(number) + ": " + packet.error().message);
    frame.packet = std::move(*packet);
    frames.push_back(std::move(frame));
  }
  if (outcome != PCAP_ERROR_BREAK) throw std::runtime_error(path + ": " + pcap_geterr(file.get()));
  return frames;
}

const Packet& Exchange::first_request() const {
  return std::ranges::find_if(frames, &RecordedFrame::is_request)->packet;
}

const Packet& Exchange::first_answer() const {
  return std::ranges::find_if_not(frames, &RecordedFrame::is_request)->packet;
}

uint32_t Exchange::path_mtu(uint32_t otherwise) const {
  for (const RecordedFrame& frame : frames) {
    const Position position = frame.info().position;
    if (position == Position::kFirst || position == Position::kMiddle)
      return static_cast<uint32_t>(frame.packet.payload.size());
  }
  return otherwise;
}

std::vector<Exchange> load_exchanges(const std::string& name, Unanswered unanswered) {
  using Connection = std::tuple<IpAddress, IpAddress, uint16_t>;  // requester, responder, UDP source port
  std::map<Connection, Exchange> exchanges;
  bool managed = false;
  for (RecordedFrame& frame : load_frames(name)) {
    managed |= frame.packet.bth.destination_qp == kManagementQp;
    if (frame.info().transport != TransportClass::kRc) continue;
    const Packet& p = frame.packet;
    const bool request = frame.is_request();
    Exchange& exchange = exchanges[request ? Connection{p.source, p.destination, p.udp_source_port}
                                           : Connection{p.destination, p.source, p.udp_source_port}];
    exchange.capture = name;
    Qpn& end = request ? exchange.responder : exchange.requester;
    if (end.value() != 0 && end != p.bth.destination_qp)
      throw std::runtime_error(name + ": two connections share a UDP source port");
    end = p.bth.destination_qp;
    exchange.frames.push_back(std::move(frame));
  }
  std::vector<Exchange> all;
  for (auto& [connection, exchange] : exchanges) {
    const bool asked = std::ranges::any_of(exchange.frames, &RecordedFrame::is_request);
    const bool answered = !std::ranges::all_of(exchange.frames, &RecordedFrame::is_request);
    if (!asked || (!answered && unanswered == Unanswered::kLeaveOut)) continue;
    if (!answered) exchange.requester = find_sender(exchange.first_request());
    exchange.managed = managed;
    all.push_back(std::move(exchange));
  }
  return all;
}

std::set<std::string> captures_of_reliable_connections() {
  std::set<std::string> found;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(ROCI_SOURCE_DIR) + "/tests/pcaps")) {
    if (file.path().extension() != ".pcap") continue;
    const std::string name = file.path().stem();
    if (!load_exchanges(name, Unanswered::kToo).empty()) found.insert(name);
  }
  return found;
}

Qpn find_sender(const Packet& packet) {
  for (uint32_t number = 17; number < 1000; ++number) {
    if (flow_udp_source_port(0, Qpn{number}, packet.bth.destination_qp) == packet.udp_source_port)
      return Qpn{number};
  }
  throw std::runtime_error("no queue pair number makes this UDP source port");
}

bool icrc_is_right(const Packet& packet) { return Packet(packet).finish().icrc == packet.icrc; }

std::string answer_line(const Packet& packet) {
  std::string line(find_opcode(static_cast<uint8_t>(packet.bth.opcode))->name);
  line += " " + std::to_string(packet.bth.psn.value());
  if (packet.aeth) line += " " + hex_text(std::array{packet.aeth->syndrome});
  return line;
}

}  // namespace roci::test
