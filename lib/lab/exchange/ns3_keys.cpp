#include "lab/exchange/ns3_keys.hpp"

#include <algorithm>
#include <array>

namespace roci::lab {
namespace {

constexpr std::string_view kNoTrace = "the lab writes no packet traces";
constexpr std::string_view kOwnNames = "'roci-lab run --ns3-results' has fixed file names";
constexpr std::string_view kNoCounterpart = "the lab writes no such file";
constexpr std::string_view kUnused = "the simulator reads the key but does not use it";
constexpr std::string_view kGoBack = "retransmissions start with the lost packet";
constexpr std::string_view kEcmp = "switches of the lab distribute flows by ECMP";
constexpr std::string_view kFromFile = "all flows are in FLOW_FILE";

constexpr auto kNs3Keys = std::to_array<Ns3Key>({
    {"TOPOLOGY_FILE"},
    {"FLOW_FILE"},
    {"CC_MODE"},
    {"ENABLE_QCN"},
    {"USE_DYNAMIC_PFC_THRESHOLD", 1, kNs3All, "PFC thresholds of the simulator are always dynamic", "1"},
    {"PACKET_PAYLOAD_SIZE"},
    {"L2_ACK_INTERVAL"},
    {"SIMULATOR_STOP_TIME"},
    {"BUFFER_SIZE"},
    {"ERROR_RATE_PER_LINK"},
    {"QLEN_MON_START"},
    {"QLEN_MON_END"},
    {"HAS_WIN"},
    {"VAR_WIN"},
    {"GLOBAL_T", 1, kNs3All, "the base round trip is that of the most distant hosts", "1"},
    {"MIN_RATE"},
    {"RATE_AI", 1, kNs3Dcqcn | kNs3Hpcc | kNs3Timely},
    {"RATE_HAI", 1, kNs3Dcqcn | kNs3Timely},
    {"ALPHA_RESUME_INTERVAL", 1, kNs3Dcqcn},
    {"RATE_DECREASE_INTERVAL", 1, kNs3Dcqcn},
    {"CLAMP_TARGET_RATE", 1, kNs3Dcqcn},
    {"RP_TIMER", 1, kNs3Dcqcn},
    {"FAST_RECOVERY_TIMES", 1, kNs3Dcqcn},
    {"EWMA_GAIN", 1, kNs3Dcqcn | kNs3Dctcp},
    {"KMAX_MAP", Ns3Key::kByRate, kNs3Dcqcn | kNs3Dctcp},
    {"KMIN_MAP", Ns3Key::kByRate, kNs3Dcqcn | kNs3Dctcp},
    {"PMAX_MAP", Ns3Key::kByRate, kNs3Dcqcn | kNs3Dctcp},
    {"FAST_REACT", 1, kNs3Hpcc},
    {"U_TARGET", 1, kNs3Hpcc},
    {"MI_THRESH", 1, kNs3Hpcc},
    {"DCTCP_RATE_AI", 1, kNs3Dctcp},
    {"INT_MULTI", 1, kNs3Hpcc, "telemetry of the lab has exact values"},
    {"MULTI_RATE", 1, kNs3Hpcc, "a flow has one rate, not one per hop", "0"},
    {"SAMPLE_FEEDBACK", 1, kNs3Hpcc, "every acknowledgment carries telemetry", "0"},
    {"PINT_LOG_BASE", 1, kNs3None},
    {"PINT_PROB", 1, kNs3None},
    {"RATE_BOUND", 1, kNs3All, "rates always limit the flows", "1"},
    {"ACK_HIGH_PRIO", 1, kNs3All, "acknowledgments are in the class of the data", "0"},
    {"L2_CHUNK_SIZE", 1, kNs3All, kGoBack},
    {"L2_BACK_TO_ZERO", 1, kNs3All, kGoBack, "0"},
    {"LINK_DOWN", 3, kNs3All, "switches of the lab do not recompute routes", "0"},
    {"PAUSE_TIME", 1, kNs3All, "switches end pauses by a frame"},
    {"DATA_RATE", 1, kNs3All, kUnused},
    {"LINK_DELAY", 1, kNs3All, kUnused},
    {"TRACE_FILE", 1, kNs3All, kNoTrace},
    {"TRACE_OUTPUT_FILE", 1, kNs3All, kNoTrace},
    {"ENABLE_TRACE", 1, kNs3All, kNoTrace, "0"},
    {"FCT_OUTPUT_FILE", 1, kNs3All, kOwnNames},
    {"PFC_OUTPUT_FILE", 1, kNs3All, kOwnNames},
    {"QLEN_MON_FILE", 1, kNs3All, kOwnNames},
    // ConWeave
    {"ENABLE_PFC"},
    {"ENABLE_IRN"},
    {"SW_MONITORING_INTERVAL"},
    {"RANDOM_SEED"},
    {"LB_MODE", 1, kNs3All, kEcmp, "0"},
    {"FLOWGEN_START_TIME", 1, kNs3All, kFromFile},
    {"FLOWGEN_STOP_TIME", 1, kNs3All, kFromFile},
    {"LOAD", 1, kNs3All, kFromFile},
    {"FLOW_INPUT_FILE", 1, kNs3All, kNoCounterpart},
    {"CNP_OUTPUT_FILE", 1, kNs3All, kNoCounterpart},
    {"VOQ_MON_FILE", 1, kNs3All, kNoCounterpart},
    {"VOQ_MON_DETAIL_FILE", 1, kNs3All, kNoCounterpart},
    {"UPLINK_MON_FILE", 1, kNs3All, kNoCounterpart},
    {"CONN_MON_FILE", 1, kNs3All, kNoCounterpart},
    {"EST_ERROR_MON_FILE", 1, kNs3All, kNoCounterpart},
    {"CONWEAVE_TX_EXPIRY_TIME", 1, kNs3All, kEcmp},
    {"CONWEAVE_REPLY_TIMEOUT_EXTRA", 1, kNs3All, kEcmp},
    {"CONWEAVE_PATH_PAUSE_TIME", 1, kNs3All, kEcmp},
    {"CONWEAVE_EXTRA_VOQ_FLUSH_TIME", 1, kNs3All, kEcmp},
    {"CONWEAVE_DEFAULT_VOQ_WAITING_TIME", 1, kNs3All, kEcmp},
    // Rocinante
    {"ROCI_TIME_ORIGIN"},
    {"ROCI_SAMPLE"},
    {"ROCI_SEED"},
});

}  // namespace

std::span<const Ns3Key> ns3_keys() { return kNs3Keys; }

const Ns3Key* find_ns3_key(std::string_view name) {
  const auto found = std::ranges::find(kNs3Keys, name, &Ns3Key::name);
  return found == kNs3Keys.end() ? nullptr : &*found;
}

}  // namespace roci::lab
