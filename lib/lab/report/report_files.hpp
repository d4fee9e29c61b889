// Files of the HTML report, embedded at build time: those of lib/lab/report/, and Chart.js (MIT).
#pragma once

#include <string_view>

namespace roci::lab {

std::string_view report_html();
std::string_view report_css();
std::string_view common_js();
std::string_view charts_js();
std::string_view report_js();
std::string_view chart_js();

}  // namespace roci::lab
