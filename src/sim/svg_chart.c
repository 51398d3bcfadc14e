/* SPDX-License-Identifier: Apache-2.0 */
/* svg_chart.c - lines over a common axis, as an SVG drawing */
#include "sim/svg_chart.h"

#include <math.h>

#define WIDTH 760
#define HEIGHT 360
#define LEFT 70
#define RIGHT 170
#define TOP 40
#define BOTTOM 50
#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT (HEIGHT - TOP - BOTTOM)
#define TICKS 5

/* Told apart also without colour vision (Okabe and Ito). */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                       "#e69f00", "#56b4e9", "#000000", "#f0e442" };

/* 1, 2 or 5 times a power of ten, not less. */
static double svg_chart_round_up(double value)
{
    double power;

    if (!(value > 0))
        return 1;
    power = pow(10, floor(log10(value)));
    for (int i = 0; i < 3; i++) {
        static const double steps[] = { 1, 2, 5 };

        if (value <= steps[i] * power)
            return steps[i] * power;
    }
    return 10 * power;
}

static void svg_chart_add_text(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            strbuf_adds(out, "&lt;");
        else if (*text == '&')
            strbuf_adds(out, "&amp;");
        else
            strbuf_addc(out, *text);
    }
}

static void svg_chart_find_ends(const struct svg_chart *c, double *ret_x, double *ret_y)
{
    *ret_x = *ret_y = 0;
    for (size_t s = 0; s < c->series_count; s++)
        for (size_t i = 0; i < c->series[s].count; i++) {
            *ret_x = fmax(*ret_x, c->series[s].x[i]);
            *ret_y = fmax(*ret_y, c->series[s].y[i]);
        }
    *ret_x = svg_chart_round_up(*ret_x);
    *ret_y = svg_chart_round_up(*ret_y);
}

static void svg_chart_draw_axes(const struct svg_chart *c, double x_end, double y_end,
                                struct strbuf *out)
{
    strbuf_addf(out, "<text x=\"%d\" y=\"22\" font-size=\"15\">", LEFT);
    svg_chart_add_text(out, c->title);
    strbuf_addf(out, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                LEFT + PLOT_WIDTH / 2, HEIGHT - 10);
    svg_chart_add_text(out, c->x_name);
    strbuf_addf(out,
                "</text>\n<text transform=\"translate(16 %d) rotate(-90)\" "
                "text-anchor=\"middle\">",
                TOP + PLOT_HEIGHT / 2);
    svg_chart_add_text(out, c->y_name);
    strbuf_adds(out, "</text>\n");
    for (int i = 0; i <= TICKS; i++) {
        double x = LEFT + (double)PLOT_WIDTH * i / TICKS;
        double y = TOP + PLOT_HEIGHT - (double)PLOT_HEIGHT * i / TICKS;

        strbuf_addf(out, "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/>\n", LEFT, y, PLOT_WIDTH);
        strbuf_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6,
                    y + 4, y_end * i / TICKS);
        strbuf_addf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
                    TOP + PLOT_HEIGHT + 18, x_end * i / TICKS);
    }
}

static void svg_chart_draw_series(const struct svg_chart *c, size_t s, double x_end, double y_end,
                                  struct strbuf *out)
{
    const struct svg_chart_series *series = &c->series[s];
    const char *colour = colours[s % AQ_COUNT(colours)];

    strbuf_addf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
                colour);
    for (size_t i = 0; i < series->count; i++)
        strbuf_addf(out, "%s%.1f,%.1f", i ? " " : "", LEFT + PLOT_WIDTH * series->x[i] / x_end,
                    TOP + PLOT_HEIGHT - PLOT_HEIGHT * series->y[i] / y_end);
    strbuf_addf(out, "\"/>\n<text x=\"%d\" y=\"%zu\" fill=\"%s\">", WIDTH - RIGHT + 12,
                TOP + 14 + s * 18, colour);
    svg_chart_add_text(out, series->name);
    strbuf_adds(out, "</text>\n");
}

void svg_chart_write(const struct svg_chart *charts, size_t count, struct strbuf *out)
{
    strbuf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                WIDTH, HEIGHT * count);
    for (size_t i = 0; i < count; i++) {
        double x_end, y_end;

        svg_chart_find_ends(&charts[i], &x_end, &y_end);
        strbuf_addf(out, "<g transform=\"translate(0 %zu)\">\n", HEIGHT * i);
        svg_chart_draw_axes(&charts[i], x_end, y_end, out);
        for (size_t s = 0; s < charts[i].series_count; s++)
            svg_chart_draw_series(&charts[i], s, x_end, y_end, out);
        strbuf_adds(out, "</g>\n");
    }
    strbuf_adds(out, "</svg>\n");
}
