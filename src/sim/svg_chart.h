/* SPDX-License-Identifier: Apache-2.0 */
/* svg_chart.h - lines over a common axis, as an SVG drawing */
#ifndef AQ_SIM_SVG_CHART_H
#define AQ_SIM_SVG_CHART_H

#include "base/strbuf.h"

#define SVG_CHART_SERIES_MAX 12

struct svg_chart_series {
    const char *name;
    const double *x, *y;
    size_t count;
};

struct svg_chart {
    const char *title, *x_name, *y_name;
    struct svg_chart_series series[SVG_CHART_SERIES_MAX];
    size_t series_count;
};

/* Several below each other. Axes begin at 0 and end at a round number. */
void svg_chart_write(const struct svg_chart *charts, size_t count, struct strbuf *out);

#endif
