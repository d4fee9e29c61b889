// Static rates as multiples of 2.5 Gbit/s and in Mbit/s.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>

#include "verbs/any_value.hpp"

namespace {

struct VerbsRate {
  int rate;      // ibv_rate; callers may pass values outside the enumeration
  int multiple;  // of 2.5 Gbit/s; 0: no multiple
  int mbps;      // data rate of the lanes; the name is rounded
};

constexpr std::array kRates{
    VerbsRate{IBV_RATE_2_5_GBPS, 1, 2500},       VerbsRate{IBV_RATE_5_GBPS, 2, 5000},
    VerbsRate{IBV_RATE_10_GBPS, 4, 10000},       VerbsRate{IBV_RATE_20_GBPS, 8, 20000},
    VerbsRate{IBV_RATE_30_GBPS, 12, 30000},      VerbsRate{IBV_RATE_40_GBPS, 16, 40000},
    VerbsRate{IBV_RATE_60_GBPS, 24, 60000},      VerbsRate{IBV_RATE_80_GBPS, 32, 80000},
    VerbsRate{IBV_RATE_120_GBPS, 48, 120000},    VerbsRate{IBV_RATE_14_GBPS, 0, 14062},
    VerbsRate{IBV_RATE_56_GBPS, 0, 56250},       VerbsRate{IBV_RATE_112_GBPS, 0, 112500},
    VerbsRate{IBV_RATE_168_GBPS, 0, 168750},     VerbsRate{IBV_RATE_25_GBPS, 0, 25781},
    VerbsRate{IBV_RATE_100_GBPS, 0, 103125},     VerbsRate{IBV_RATE_200_GBPS, 0, 206250},
    VerbsRate{IBV_RATE_300_GBPS, 0, 309375},     VerbsRate{IBV_RATE_28_GBPS, 11, 28125},
    VerbsRate{IBV_RATE_50_GBPS, 20, 53125},      VerbsRate{IBV_RATE_400_GBPS, 160, 425000},
    VerbsRate{IBV_RATE_600_GBPS, 240, 637500},   VerbsRate{IBV_RATE_800_GBPS, 320, 850000},
    VerbsRate{IBV_RATE_1200_GBPS, 480, 1275000},
};

const VerbsRate* find(int VerbsRate::*member, int value) {
  const auto* found = std::find_if(kRates.begin(), kRates.end(),
                                   [=](const VerbsRate& rate) { return rate.*member == value; });
  return found == kRates.end() ? nullptr : found;
}

}  // namespace

ROCI_ANY_VALUE int ibv_rate_to_mult(ibv_rate rate) {
  const VerbsRate* found = find(&VerbsRate::rate, static_cast<int>(rate));
  return found != nullptr && found->multiple != 0 ? found->multiple : -1;
}

ibv_rate mult_to_ibv_rate(int mult) {
  const VerbsRate* found = mult != 0 ? find(&VerbsRate::multiple, mult) : nullptr;
  return found != nullptr ? static_cast<ibv_rate>(found->rate) : IBV_RATE_MAX;
}

ROCI_ANY_VALUE int ibv_rate_to_mbps(ibv_rate rate) {
  const VerbsRate* found = find(&VerbsRate::rate, static_cast<int>(rate));
  return found != nullptr ? found->mbps : -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  const VerbsRate* found = find(&VerbsRate::mbps, mbps);
  return found != nullptr ? static_cast<ibv_rate>(found->rate) : IBV_RATE_MAX;
}
