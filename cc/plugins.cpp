// The algorithms that are built in.
#include "roci/cc.h"

extern "C" {
extern const roci_cc_plugin roci_cc_dcqcn;
extern const roci_cc_plugin roci_cc_ldcp_pcc;
extern const roci_cc_plugin roci_cc_qcn;
extern const roci_cc_plugin roci_cc_static_rate;
extern const roci_cc_plugin roci_cc_static_window;
extern const roci_cc_plugin roci_cc_timely;

const roci_cc_plugin* const* roci_cc_plugins(void) {
  static const roci_cc_plugin* const kPlugins[] = {
      &roci_cc_dcqcn,         &roci_cc_ldcp_pcc, &roci_cc_qcn, &roci_cc_static_rate,
      &roci_cc_static_window, &roci_cc_timely,   nullptr,
  };
  return kPlugins;
}
}
