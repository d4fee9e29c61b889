// A connected stream of rsockets whose peer lies: immediate data, grants and mappings as the input selects, between calls of
// a program. Every RDMA WRITE stays within a grant or a mapping of the peer, no queue and no list of grants overflows, and the program receives no
// more than the peer announced.
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "rdmacm/addresses.hpp"
#include "rdmacm/fake_device.hpp"
#include "rdmacm/sockets/socket.hpp"

namespace {

using namespace roci::rdmacm;
using namespace roci::rdmacm::sockets;
using fake::Device;
using roci::test::Input;
using roci::test::require;

constexpr uint16_t kMappings = 2;
constexpr uint32_t kFirstGrant = 1024;
constexpr size_t kAreaWords = sizeof(Area) / sizeof(uint64_t);

class Exchange {
 public:
  explicit Exchange(Input& input) : input_(input) { connect(); }
  ~Exchange() {
    // The peer does not answer, so a close would wait.
    stream_.reset();
    listener_.reset();
    device_.pass(std::chrono::hours(1));
    device_.messages.clear();
    device_.made.clear();
    require(device_.queue_pairs.empty() && device_.regions.empty() && device_.channels == 0,
            "a destroyed socket leaves no objects");
  }

  void run() {
    for (int step = 0; step < 300 && !input_.empty(); ++step) {
      act();
      stream_->poll_events(POLLIN | POLLOUT);
      check();
    }
  }

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  void connect() {
    device_.messages.clear();
    listener_ = make_stream(AF_INET);
    const int mappings = kMappings;
    require(listener_->set_option(SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings) == 0);
    sockaddr_storage address{};
    write_address(fake::kOwn, 0, false, address);
    require(listener_->bind(reinterpret_cast<const sockaddr&>(address), sizeof(sockaddr_in)) == 0);
    socklen_t length = sizeof address;
    require(listener_->name(false, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    listener_->set_status_flags(O_NONBLOCK);
    require(listener_->listen(4) == 0);
    fake::StreamRequest request{.port = port_of(reinterpret_cast<const sockaddr&>(address))};
    request.ring = kFirstGrant;
    request.credits = input_.number<uint16_t>();
    device_.receive(request.from, fake::request_of(request));
    listener_->poll_events(POLLIN);
    stream_ = listener_->accept();
    require(stream_ != nullptr, "a valid request makes a stream");
    stream_->set_status_flags(O_NONBLOCK);
    const auto& reply = std::get<roci::CmReply>(device_.messages.back().mad.message);
    const auto local = from_wire(reply.private_data);
    require(local.has_value());
    written_ = reinterpret_cast<uint64_t*>(local->grants.address);
    granted_ = local->ring.length;
    pair_ = device_.made.back();
    device_.receive(request.from, roci::CmReady{.local_id = request.id, .remote_id = reply.local_id});
    stream_->poll_events(POLLOUT);
    allowed_.push_back({0x20000, 0x20000 + kFirstGrant});
    check();
  }

  void act() {
    switch (input_.byte() % 10) {
      case 0:
        pair_->receive_immediate(input_.number<uint32_t>());
        sure_ = false;  // may announce data
        return;
      case 1: {
        const uint32_t bytes = input_.number<uint16_t>();
        if (pair_->receive_immediate(word(Operation::kData, bytes))) announced_ += bytes;
        return;
      }
      case 2:
        pair_->receive_immediate(word(Operation::kCredits, input_.number<uint16_t>()));
        return;
      case 3:
        return grant();
      case 4:
        return map();
      case 5: {
        std::vector<uint8_t> bytes(input_.number<uint16_t>());
        const iovec piece{bytes.data(), bytes.size()};
        stream_->send({&piece, 1}, 0, nullptr, 0);
        return;
      }
      case 6: {
        std::vector<uint8_t> bytes(input_.number<uint16_t>());
        const iovec piece{bytes.data(), bytes.size()};
        const ssize_t some = stream_->receive({&piece, 1}, 0, nullptr, nullptr);
        if (some > 0) received_ += static_cast<uint64_t>(some);
        return;
      }
      case 7: {
        const std::vector<uint8_t> bytes(input_.number<uint16_t>());
        stream_->write_mapped(bytes.data(), bytes.size(), input_.byte(), 0);
        return;
      }
      case 8:
        pair_->complete_sends(input_.byte(), input_.byte() == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
        return;
      default:
        pair_->complete_sends(input_.byte() % 4);
        return;
    }
  }

  // Any bytes in the list of grants. A grant with a length may be used.
  void grant() {
    const uint32_t index = input_.byte() % kGrants;
    const Area area{.address = uint64_t{input_.byte()} << 24, .key = 7, .length = input_.number<uint32_t>()};
    write(index * kAreaWords, area);
    offered_[index] = area.length > 0;
    allowed_.push_back({area.address, area.address + area.length});
  }

  void map() {
    constexpr size_t kWords = sizeof(Mapping) / sizeof(uint64_t);
    const Mapping mapping{.offset = input_.byte(),
                          .area = {.address = uint64_t{input_.byte()} << 24 | 1U << 20,
                                   .key = 8,
                                   .length = input_.number<uint32_t>()}};
    write(kGrants * kAreaWords + input_.byte() % kMappings * kWords, mapping);
    mapped_.push_back({mapping.area.address, mapping.area.address + mapping.area.length});
    pair_->receive_immediate(word(Operation::kMapping, input_.byte()));
  }

  template <class Value>
  void write(size_t at, const Value& value) {
    const auto words = std::bit_cast<std::array<uint64_t, sizeof value / sizeof(uint64_t)>>(value);
    std::ranges::copy(words, written_ + at);
  }

  static bool contains(const std::vector<Range>& ranges, uint64_t begin, uint64_t end) {
    return std::ranges::any_of(ranges,
                               [&](const Range& range) { return begin >= range.begin && end <= range.end; });
  }

  void check() {
    require(pair_->refused == 0, "no request is posted to a full queue");
    for (; checked_ < pair_->sent.size(); ++checked_) {
      const fake::Sent& sent = pair_->sent[checked_];
      require(sent.length <= 1U << 16, "no message is longer than 64 KiB");
      const uint64_t end = sent.remote_address + sent.length;
      if (sent.opcode == IBV_WR_RDMA_WRITE) {
        require(
            sent.length == 0 ? sent.remote_address == 0x10000 : contains(mapped_, sent.remote_address, end),
            "a WRITE without data is a probe, others are within a mapping");
      } else if (operation_of(sent.immediate) == Operation::kData) {
        require(sent.length > 0 && sent.length == operand_of(sent.immediate) &&
                    contains(allowed_, sent.remote_address, end),
                "data is within a grant");
        used_up_ +=
            std::ranges::any_of(allowed_, [&](const Range& range) { return end == range.end; }) ? 1 : 0;
      } else if (operation_of(sent.immediate) == Operation::kCredits && sent.length > 0) {
        granted_ += std::bit_cast<Area>(area_in(sent)).length;
      }
    }
    for (uint32_t i = 0; i < kGrants; ++i) {
      if (offered_[i] && written_[i * kAreaWords + 1] == 0) ++taken_;
      offered_[i] = offered_[i] && written_[i * kAreaWords + 1] != 0;
    }
    require(taken_ <= used_up_ + kGrants + 1, "a stream holds a limited number of grants");
    if (sure_) require(received_ <= announced_, "the program receives what the peer announced");
    require(received_ <= granted_, "the program receives what it granted");
  }

  static std::array<uint8_t, sizeof(Area)> area_in(const fake::Sent& sent) {
    std::array<uint8_t, sizeof(Area)> out{};
    require(sent.length == out.size(), "a credit message has one grant");
    std::ranges::copy(sent.content, out.begin());
    return out;
  }

  Input& input_;
  Device& device_ = Device::instance();
  std::shared_ptr<Socket> listener_, stream_;
  fake::QueuePair* pair_ = nullptr;
  uint64_t* written_ = nullptr;  // list of grants, then mappings
  std::vector<Range> allowed_, mapped_;
  size_t checked_ = 0;
  uint64_t announced_ = 0, received_ = 0, granted_ = 0;
  bool sure_ = true;
  std::array<bool, kGrants> offered_{};  // grants that the stream has not taken
  size_t taken_ = 1, used_up_ = 0;       // grants, with that of the request
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  Exchange exchange(input);
  exchange.run();
  return 0;
}
