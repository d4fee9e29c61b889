// Table of the built-in congestion control algorithms.
#include "roci/cc.h"

extern "C" {
extern const roci_cc_plugin roci_cc_dcqcn;
extern const roci_cc_plugin roci_cc_dctcp;
extern const roci_cc_plugin roci_cc_hpcc;
extern const roci_cc_plugin roci_cc_hpcc_receiver;
extern const roci_cc_plugin roci_cc_hpcc_sampled;
extern const roci_cc_plugin roci_cc_ldcp;
extern const roci_cc_plugin roci_cc_ldcp_pcc;
extern const roci_cc_plugin roci_cc_powertcp;
extern const roci_cc_plugin roci_cc_qcn;
extern const roci_cc_plugin roci_cc_static_rate;
extern const roci_cc_plugin roci_cc_static_window;
extern const roci_cc_plugin roci_cc_swift;
extern const roci_cc_plugin roci_cc_theta_powertcp;
extern const roci_cc_plugin roci_cc_timely;

const roci_cc_plugin* const* roci_cc_plugins(void) {
  static const roci_cc_plugin* const kPlugins[] = {
      &roci_cc_dcqcn,          &roci_cc_dctcp,         &roci_cc_hpcc,
      &roci_cc_hpcc_receiver,  &roci_cc_hpcc_sampled,  &roci_cc_ldcp,
      &roci_cc_ldcp_pcc,       &roci_cc_powertcp,      &roci_cc_qcn,
      &roci_cc_static_rate,    &roci_cc_static_window, &roci_cc_swift,
      &roci_cc_theta_powertcp, &roci_cc_timely,        nullptr,
  };
  return kPlugins;
}
}
