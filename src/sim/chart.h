/* chart.h - lines over a common axis, as an SVG drawing */
#ifndef AQ_SIM_CHART_H
#define AQ_SIM_CHART_H

#include "base/strbuf.h"

#define CHART_SERIES_MAX 12

struct chart_series {
    const char *name;
    const double *x, *y;
    size_t count;
};

struct chart {
    const char *title, *x_name, *y_name;
    struct chart_series series[CHART_SERIES_MAX];
    size_t series_count;
};

/* Several below each other. Axes begin at 0 and end at a round number. */
void chart_write(const struct chart *charts, size_t count, struct strbuf *out);

#endif
