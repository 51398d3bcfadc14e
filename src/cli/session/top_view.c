/* SPDX-License-Identifier: Apache-2.0 */
/* top_view.c - "top" on a terminal: what is drawn, and what keys do */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/resource_usage.h"
#include "cli/output/table.h"
#include "cli/session/live.h"
#include "cli/session/session.h"
#include "cli/session/stats_table.h"
#include "cli/session/top.h"

#define SEARCH_MAX 64
#define MARK_WIDTH 2 /* of the selected row */
#define ROWS_LEFT 8  /* for the rest of the screen, whatever devices there are */

#define KEYS_LIST "q quit  ? keys  / search  space pause  Enter details"
#define KEYS_DETAILS "Esc back  space pause  q quit"

static const char top_help[] = "Up Down PgUp PgDn Home End  move\n"
                               "Enter    what the session uses, with its last samples\n"
                               "c        sort by cores\n"
                               "m        sort by memory\n"
                               "g        sort by accelerators\n"
                               "a        sort by age\n"
                               "n        sort by name\n"
                               "         the same key again: the other way\n"
                               "/        search names and users; Enter keeps, Esc clears\n"
                               "space p  pause, and go on\n"
                               "d        devices: hide, and show\n"
                               "Ctrl-L   redraw\n"
                               "? h      these keys\n"
                               "q Esc Ctrl-C  quit\n";

struct top_view {
    struct live live;
    const char *path;
    json_t *answer;    /* the last one, its sessions adapted */
    int64_t read_usec; /* when it came */
    struct top_order order;
    char search[SEARCH_MAX + 1];
    bool is_typing, has_help, hides_devices, is_over;

    json_t **rows; /* of 'answer' */
    size_t count, selected, first;
    char selected_id[40]; /* stays selected wherever it goes; "" = none */
    size_t page;          /* rows that fit */

    char session[72], id[40]; /* whose details are shown; "" = none */
    struct stats_history details;
};

/* ---- rows ---- */

static const char *top_view_text(const struct top_view *v, size_t row, const char *key)
{
    return output_text(v->rows[row], key);
}

static void top_view_select(struct top_view *v, int64_t row)
{
    v->selected = (size_t)AQ_MAX(AQ_MIN(row, (int64_t)v->count - 1), INT64_C(0));
    (void)snprintf(v->selected_id, sizeof(v->selected_id), "%s",
                   v->count ? top_view_text(v, v->selected, "id") : "");
}

/* After anything that changes which rows there are, or their order. */
static void top_view_arrange(struct top_view *v)
{
    size_t row = 0;

    free(v->rows);
    v->count = 0;
    v->rows = top_select(json_object_get(v->answer, "sessions"), v->search, v->order, &v->count);
    while (row < v->count && strcmp(top_view_text(v, row, "id"), v->selected_id) != 0)
        row++;
    top_view_select(v, (int64_t)(row < v->count ? row : v->selected));
}

static void top_view_take(struct top_view *v, json_t *answer)
{
    const struct output o = live_output(&v->live);
    json_t *session;
    size_t i;

    json_array_foreach(json_object_get(answer, "sessions"), i, session)
        top_adapt(&o, session);
    json_decref(v->answer);
    v->answer = answer;
    v->read_usec = clock_realtime_usec();
    top_view_arrange(v);
}

/* ---- drawing ---- */

static struct output top_view_output(const struct top_view *v)
{
    struct output o = live_output(&v->live);

    o.now_usec = v->read_usec; /* a pause stops ages, too */
    return o;
}

static void top_view_write_title(const struct top_view *v, struct strbuf *out)
{
    time_t sec = (time_t)(v->read_usec / USEC_PER_SEC);
    long long running = json_integer_value(json_object_get(v->answer, "running"));
    struct tm local;
    char clock[16];

    (void)strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&sec, &local));
    strbuf_addf(out, "aliquot top  %s", clock);
    if (v->live.is_paused)
        strbuf_adds(out, "  PAUSED");
    strbuf_addf(out, "  %zu of %lld running", v->count, running);
    if (v->search[0])
        strbuf_addf(out, "  matching '%s'", v->search);
    strbuf_addc(out, '\n');
}

static void top_view_write_devices(const struct top_view *v, const struct output *o,
                                   struct strbuf *out)
{
    const json_t *agents = json_object_get(v->answer, "agents");

    if (v->hides_devices)
        return;
    top_write_agents(o, agents, out);
    for (size_t i = 0; !agents && i < v->count; i++)
        usage_write_accelerators(o, v->rows[i], out);
    if (!agents && out->len)
        strbuf_addc(out, '\n');
}

static size_t top_view_count_lines(const struct strbuf *text)
{
    size_t lines = 0;

    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    return lines;
}

/* At most so many lines; the last says how many there are not. */
static void top_view_add_some(const struct strbuf *text, size_t lines, struct strbuf *out)
{
    const char *at = text->data;
    size_t all = top_view_count_lines(text);

    for (size_t i = 0; i < AQ_MIN(all, lines); i++) {
        const char *end = strchr(at, '\n') + 1;

        if (i + 1 == lines && all > lines)
            strbuf_addf(out, "  ... %zu lines more; d hides\n", all - lines + 1);
        else
            strbuf_add(out, at, (size_t)(end - at));
        at = end;
    }
}

/* Without the colours, which would end the mark. */
static void top_view_add_marked(const struct output *o, const char *line, size_t len,
                                struct strbuf *out)
{
    strbuf_adds(out, o->colour ? "\033[7m> " : "> ");
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "m");
        else
            strbuf_addc(out, line[i]);
    }
    strbuf_adds(out, o->colour ? TABLE_COLOUR_END "\n" : "\n");
}

/* So that the selected row is seen. */
static void top_view_scroll(struct top_view *v, size_t page)
{
    v->page = page;
    if (v->selected < v->first)
        v->first = v->selected;
    if (v->selected >= v->first + page)
        v->first = v->selected - page + 1;
    if (v->first + page > v->count)
        v->first = v->count > page ? v->count - page : 0;
}

/* The header, and the rows that fit. */
static void top_view_write_rows(struct top_view *v, struct output o, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf table = STRBUF_INIT;
    size_t used = top_view_count_lines(out) + 2, rows = (size_t)v->live.screen.rows;
    const char *at;

    o.width -= MARK_WIDTH;
    o.no_header = false;
    top_write_rows(&o, v->rows, v->count, v->order, &table);
    top_view_scroll(v, rows > used ? rows - used : 1);
    at = table.data;
    for (size_t i = 0; *at; i++) {
        size_t len = (size_t)(strchrnul(at, '\n') - at);

        if (i == 0 || (i > v->first && i <= v->first + v->page)) {
            if (i && i - 1 == v->selected) {
                top_view_add_marked(&o, at, len, out);
            } else {
                strbuf_adds(out, "  ");
                strbuf_add(out, at, len);
                strbuf_addc(out, '\n');
            }
        }
        at += len + (at[len] == '\n');
    }
}

static void top_view_write_list(struct top_view *v, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf devices = STRBUF_INIT;
    const struct output o = top_view_output(v);
    int room = (v->live.screen.rows - ROWS_LEFT) / 2;

    top_view_write_title(v, out);
    top_view_write_devices(v, &o, &devices);
    top_view_add_some(&devices, (size_t)AQ_MAX(room, 0), out);
    if (v->count)
        top_view_write_rows(v, o, out);
    else
        strbuf_adds(out, v->search[0] ? "no session matches\n" : "no session runs\n");
}

static void top_view_draw(struct top_view *v)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, keys = STRBUF_INIT;
    const struct output o = top_view_output(v);

    strbuf_adds(&keys, v->id[0] ? KEYS_DETAILS : KEYS_LIST);
    if (v->has_help) {
        strbuf_adds(&text, top_help);
        strbuf_clear(&keys);
        strbuf_adds(&keys, "any key: back");
    } else if (v->id[0]) {
        if (v->details.count)
            stats_write_live(&o, &v->details, &text);
        else
            strbuf_addf(&text, "%s\n", v->session);
    } else {
        top_view_write_list(v, &text);
    }
    if (v->is_typing) {
        strbuf_clear(&keys);
        strbuf_addf(&keys, "/%s_  Enter keeps, Esc clears", v->search);
    }
    live_draw(&v->live, &text, keys.data);
}

/* ---- keys ---- */

static void top_view_open_details(struct top_view *v)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    if (!v->count)
        return;
    (void)snprintf(v->session, sizeof(v->session), "%s", top_view_text(v, v->selected, "name"));
    (void)snprintf(v->id, sizeof(v->id), "%s", top_view_text(v, v->selected, "id"));
    session_path(v->live.cli, &path, v->id, "/statistics");
    if (!v->live.cli->globals.owner)
        cli_path_query(&path, "owner_access_key", top_view_text(v, v->selected, "access_key"));
    live_ask(&v->live, path.data);
}

static void top_view_close_details(struct top_view *v)
{
    v->id[0] = '\0';
    stats_history_done(&v->details);
    live_ask(&v->live, v->path);
}

static void top_view_set_search(struct top_view *v, const char *text)
{
    (void)snprintf(v->search, sizeof(v->search), "%s", text);
    top_view_arrange(v);
}

static void top_view_drop_character(struct top_view *v)
{
    size_t len = strlen(v->search);

    while (len && ((unsigned char)v->search[--len] & 0xc0) == 0x80)
        continue;
    v->search[len] = '\0';
    top_view_arrange(v);
}

static void top_view_add_character(struct top_view *v, uint32_t key)
{
    size_t len = strlen(v->search);
    char bytes[4];
    size_t size = utf8_write(key, bytes);

    if (len + size > SEARCH_MAX)
        return;
    memcpy(v->search + len, bytes, size);
    v->search[len + size] = '\0';
    top_view_arrange(v);
}

/* True if the key belongs to the search. */
static bool top_view_type(struct top_view *v, uint32_t key)
{
    if (key == KEY_ENTER || key == KEY_ESCAPE) {
        v->is_typing = false;
        if (key == KEY_ESCAPE)
            top_view_set_search(v, "");
    } else if (key == KEY_BACKSPACE) {
        top_view_drop_character(v);
    } else if (key >= ' ' && key < KEY_UP) {
        top_view_add_character(v, key);
    } else {
        return false;
    }
    return true;
}

static bool top_view_move(struct top_view *v, uint32_t key)
{
    int64_t at = (int64_t)v->selected, page = (int64_t)v->page;

    switch (key) {
    case KEY_UP:
        top_view_select(v, at - 1);
        return true;
    case KEY_DOWN:
        top_view_select(v, at + 1);
        return true;
    case KEY_PAGE_UP:
        top_view_select(v, at - page);
        return true;
    case KEY_PAGE_DOWN:
        top_view_select(v, at + page);
        return true;
    case KEY_HOME:
        top_view_select(v, 0);
        return true;
    case KEY_END:
        top_view_select(v, (int64_t)v->count - 1);
        return true;
    default:
        return false;
    }
}

static void top_view_sort(struct top_view *v, char key)
{
    v->order.is_reversed = v->order.key == key && !v->order.is_reversed;
    v->order.key = key;
    top_view_arrange(v);
}

static void top_view_escape(struct top_view *v)
{
    if (v->id[0])
        top_view_close_details(v);
    else if (v->search[0])
        top_view_set_search(v, "");
    else
        v->is_over = true;
}

static void top_view_press_in_list(struct top_view *v, uint32_t key)
{
    if (top_order_is_key(key))
        top_view_sort(v, (char)key);
    else if (key == KEY_ENTER)
        top_view_open_details(v);
    else if (key == '/')
        v->is_typing = true;
    else if (key == 'd')
        v->hides_devices = !v->hides_devices;
    else
        (void)top_view_move(v, key);
}

static void top_view_press(struct top_view *v, uint32_t key)
{
    if (key == KEY_INTERRUPT)
        v->is_over = true;
    else if (v->has_help)
        v->has_help = key == SCREEN_CHANGED;
    else if (v->is_typing && top_view_type(v, key))
        return;
    else if (key == 'q')
        v->is_over = true;
    else if (key == KEY_ESCAPE)
        top_view_escape(v);
    else if (key == '?' || key == 'h')
        v->has_help = true;
    else if (key == ' ' || key == 'p')
        v->live.is_paused = !v->live.is_paused;
    else if (!v->id[0])
        top_view_press_in_list(v, key);
}

/* ---- the whole ---- */

static void top_view_turn(struct top_view *v)
{
    uint32_t key;
    json_t *answer;

    top_view_draw(v);
    key = live_wait(&v->live);
    if (key)
        top_view_press(v, key);
    answer = live_take_answer(&v->live);
    if (answer && v->id[0])
        stats_history_add(&v->details, answer);
    else if (answer)
        top_view_take(v, answer);
}

int top_view_run(struct cli *cli, const char *path, int64_t interval_usec, json_t *answer,
                 struct aq_error *err)
{
    struct top_view view = { .path = path, .order = { .key = 'c' } };
    int r = live_open(&view.live, cli, path, interval_usec, err);

    top_view_take(&view, answer);
    while (r == 0 && !view.is_over)
        top_view_turn(&view);
    live_close(&view.live);
    stats_history_done(&view.details);
    free(view.rows);
    json_decref(view.answer);
    return r;
}
