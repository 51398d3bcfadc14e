/* SPDX-License-Identifier: Apache-2.0 */
/* tool_report.h - how aliquot-unpack and aliquot-fetch report a failure to the agent */
#ifndef AQ_AGENT_IMAGE_TOOL_REPORT_H
#define AQ_AGENT_IMAGE_TOOL_REPORT_H

#include "base/error.h"

/* Print the line "failed CODE FIELD TEXT" ("-" = no field), without control characters. */
void tool_report(const struct aq_error *err);

#endif
