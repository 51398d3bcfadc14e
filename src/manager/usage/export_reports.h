/* SPDX-License-Identifier: Apache-2.0 */
/* export_reports.h - the reports that administrators fetch as CSV */
#ifndef AQ_MANAGER_USAGE_EXPORT_REPORTS_H
#define AQ_MANAGER_USAGE_EXPORT_REPORTS_H

#include "manager/call/export.h"

extern const struct export_report export_reports[];
extern const size_t export_report_count;

/* NULL = there is none of that name. */
const struct export_report *export_find_report(const char *key);

#endif
