#include "roci-perf/connection/endpoint.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "base/rng.hpp"
#include "net/stats_file.hpp"

namespace roci::perf {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kMinRnrTimer = 12;  // 0.64 ms (IBTA table 45), as in perftest

uint32_t mtu_bytes(ibv_mtu mtu) { return 128U << static_cast<unsigned>(mtu); }

ibv_mtu mtu_code(uint32_t bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    default:
      return IBV_MTU_4096;
  }
}

}  // namespace

Result<std::unique_ptr<Buffer>> Buffer::create(uint64_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail("no memory: " + std::to_string(size >> 20) +
                    " MiB of message buffers cannot be allocated; use a smaller --size or fewer --qp",
                ENOMEM);
  }
  return std::unique_ptr<Buffer>(new Buffer(static_cast<uint8_t*>(data), size));
}

Buffer::~Buffer() { munmap(data_, size_); }

int chosen_gid_index(const Device& device, const Options& options) {
  if (options.gid_index >= 0) return options.gid_index;
  return device.gid_count() > 1 ? 1 : 0;
}

Result<uint32_t> usable_mtu(const Device& device, uint32_t wanted) {
  const uint32_t most = mtu_bytes(device.query_port().active_mtu);
  if (wanted == 0) return most;
  if (wanted <= most) return wanted;
  return fail("path MTU " + std::to_string(wanted) + " exceeds the maximum of device " + device.name() +
                  ": at most " + std::to_string(most) + " is allowed; use --mtu " + std::to_string(most) +
                  " or less, or increase the mtu of the port",
              EINVAL);
}

Result<std::unique_ptr<Endpoint>> Endpoint::create(Device& device, const Options& options,
                                                   const Parameters& parameters, uint64_t size) {
  std::unique_ptr<Endpoint> e(new Endpoint(device, options, layout_for(parameters, size)));
  // The memory of a peer given by --peer may have only one slot.
  if (!options.peers.empty()) e->layout_.out_slots = e->layout_.in_slots = 1;
  e->operation_ = parameters.operation;
  e->gid_index_ = chosen_gid_index(device, options);
  auto gid = device.query_gid(e->gid_index_);
  if (!gid) return fail("--gid-index " + std::to_string(e->gid_index_) + ": " + gid.error().message);
  std::memcpy(e->gid_.bytes.data(), gid->raw, sizeof gid->raw);

  auto buffer = Buffer::create(e->layout_.queue_pair_bytes() * parameters.queue_pairs);
  if (!buffer) return fail(buffer.error());
  e->buffer_ = std::move(*buffer);
  auto domain = device.allocate_pd();
  if (!domain) return fail(domain.error());
  e->domain_ = std::move(*domain);
  auto region =
      e->domain_->register_memory(e->buffer_->data(), e->buffer_->size(),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!region) return fail(region.error());
  e->region_ = std::move(*region);
  ROCI_TRY(e->make_queue_pairs(device, options, parameters));
  return e;
}

Endpoint::~Endpoint() {
  if (options_.stats_file.empty()) return;
  for (const auto& queue_pair : queue_pairs_) {
    if (Status written = write_stats(options_.stats_file, device_, queue_pair->qp_num()); !written) {
      log().warn("{}", written.error().message);
      return;
    }
  }
}

Status Endpoint::make_queue_pairs(Device& device, const Options& options, const Parameters& parameters) {
  const ibv_device_attr attributes = device.query_device();
  const uint64_t completions =
      uint64_t{parameters.queue_pairs} * (uint64_t{parameters.tx_depth} + parameters.receives());
  if (completions > static_cast<uint64_t>(std::max(attributes.max_cqe, 0))) {
    return fail("--qp x (--tx-depth + " +
                std::string(parameters.operation == Operation::kSend ? "--rx-depth" : "1") + ") is " +
                std::to_string(completions) + "; the maximum of a completion queue of " + device.name() +
                " is " + std::to_string(attributes.max_cqe));
  }
  const auto most_reads = static_cast<uint32_t>(std::clamp(attributes.max_qp_rd_atom, 1, 255));
  if (options.outstanding_reads > most_reads) {
    return fail("--outs is " + std::to_string(options.outstanding_reads) + "; " + device.name() +
                " supports at most " + std::to_string(most_reads) + " outstanding READs per queue pair");
  }
  reads_ = static_cast<uint8_t>(options.outstanding_reads == 0 ? most_reads : options.outstanding_reads);
  inlines_ = options.inline_size >= layout_.size && operation_ != Operation::kRead;
  auto queue = device.create_cq(static_cast<int>(completions));
  if (!queue) return fail(queue.error());
  completions_ = std::move(*queue);

  Rng random(options.given.contains("seed") ? parameters.seed : os_random());
  for (uint32_t i = 0; i < parameters.queue_pairs; ++i) {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = parameters.tx_depth;
    init.cap.max_recv_wr = parameters.receives();
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    init.cap.max_inline_data = inlines_ ? options.inline_size : 0;
    auto pair = domain_->create_qp(&init, *completions_, *completions_);
    if (!pair) return fail(pair.error());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = kPort;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    ROCI_TRY((*pair)->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    queue_pairs_.push_back(std::move(*pair));
    psns_.push_back(static_cast<uint32_t>(random.next()) & 0xffffff);
  }
  return {};
}

std::vector<QueuePairAddress> Endpoint::addresses() const {
  std::vector<QueuePairAddress> list;
  for (uint32_t i = 0; i < count(); ++i) {
    // READ: the address of the memory that the peer reads. Otherwise: the address of the memory for received data.
    const uint8_t* start = operation_ == Operation::kRead ? out(i, 0).data() : in(i, 0).data();
    list.push_back(
        {gid_, queue_pairs_[i]->qp_num(), psns_[i], region_->rkey(), reinterpret_cast<uint64_t>(start)});
  }
  return list;
}

Status Endpoint::connect(std::vector<QueuePairAddress> peers, uint32_t mtu) {
  if (peers.size() != queue_pairs_.size()) {
    return fail("the peer has " + std::to_string(peers.size()) + " queue pairs, and this side has " +
                std::to_string(queue_pairs_.size()));
  }
  peers_ = std::move(peers);
  for (uint32_t i = 0; i < count(); ++i) {
    if (peers_[i].gid.is_v4() != gid_.is_v4()) {
      return fail("the peer's GID " + peers_[i].gid.to_string() + " and the local GID " + gid_.to_string() +
                  " have different IP versions; select another GID with --gid-index");
    }
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_code(mtu);
    attr.dest_qp_num = peers_[i].qpn;
    attr.rq_psn = peers_[i].psn;
    attr.max_dest_rd_atomic = reads_;
    attr.min_rnr_timer = kMinRnrTimer;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = kPort;
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
    attr.ah_attr.grh.hop_limit = kHopLimit;
    attr.ah_attr.grh.traffic_class = options_.traffic_class;
    std::memcpy(attr.ah_attr.grh.dgid.raw, peers_[i].gid.bytes.data(), 16);
    ROCI_TRY(queue_pairs_[i]->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                               IBV_QP_MIN_RNR_TIMER));
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = options_.qp_timeout;
    attr.retry_cnt = options_.retry_count;
    attr.rnr_retry = options_.rnr_retry;
    attr.sq_psn = psns_[i];
    attr.max_rd_atomic = reads_;
    ROCI_TRY(queue_pairs_[i]->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                               IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
  }
  return {};
}

std::span<uint8_t> Endpoint::out(uint32_t queue_pair, uint64_t number) const {
  return {buffer_->data() + queue_pair * layout_.queue_pair_bytes() +
              slot_of(number, layout_.out_slots) * layout_.stride,
          layout_.size};
}

std::span<uint8_t> Endpoint::in(uint32_t queue_pair, uint64_t number) const {
  const uint64_t slot = layout_.out_slots + slot_of(number, layout_.in_slots);
  return {buffer_->data() + queue_pair * layout_.queue_pair_bytes() + slot * layout_.stride, layout_.size};
}

Status Endpoint::post_receive(uint32_t queue_pair, uint64_t number) {
  const std::span<uint8_t> slot = in(queue_pair, number);
  ibv_sge sge{reinterpret_cast<uint64_t>(slot.data()), static_cast<uint32_t>(slot.size()), lkey()};
  ibv_recv_wr request{};
  request.wr_id = RequestId{true, queue_pair, number}.encode();
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = queue_pairs_[queue_pair]->post_recv(&request, &bad);
  if (error == 0) return {};
  return fail("posting a receive request failed: " + std::string(std::strerror(error)), error);
}

}  // namespace roci::perf
