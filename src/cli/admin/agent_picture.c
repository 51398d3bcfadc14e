/* SPDX-License-Identifier: Apache-2.0 */
/* A node as a picture: its devices as bars, cut into shares. */
#include "cli/admin/agent_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/prose.h"
#include "model/slot.h"

#define TITLE_WIDTH 14
#define BAR_WIDTH 40
#define NODES_MAX 64
#define HOLDERS_MAX 62

/* A session has one letter in the whole picture. */
struct legend {
    const char *names[HOLDERS_MAX];
    size_t count;
    bool has_others;
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static char picture_letter_of(struct legend *legend, const char *name)
{
    size_t i = 0;

    while (i < legend->count && strcmp(legend->names[i], name) != 0)
        i++;
    if (i == HOLDERS_MAX) {
        legend->has_others = true;
        return '+';
    }
    if (i == legend->count)
        legend->names[legend->count++] = name;
    return letters[i];
}

static int64_t picture_amount_of(const json_t *object, const char *key, enum slot_type type)
{
    const char *text = output_text(object, key);
    int64_t amount = 0;

    (void)slot_amount_parse(text, strlen(text), type, false, "", &amount, NULL);
    return amount;
}

static bool picture_is_accelerator(const json_t *device)
{
    return strchr(output_text(device, "slot"), '.') != NULL;
}

static enum slot_type picture_type_of(const json_t *device)
{
    return slot_type_guess(output_text(device, "slot"));
}

/* Terminals must not obey what a device is called. */
static void picture_add_clean(struct strbuf *out, const char *text)
{
    for (; *text; text++)
        strbuf_addc(out, (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

/* ---- bars ---- */

struct bar {
    char cells[BAR_WIDTH + 1];
    size_t used; /* cells filled */
    int64_t total, sum;
};

static void bar_begin(struct bar *bar, int64_t total)
{
    *bar = (struct bar){ .total = total };
    memset(bar->cells, '.', BAR_WIDTH);
}

/* A further part; cells are rounded so that the parts' sum is right, and every
 * part is seen as long as there is room.
 */
static void bar_add(struct bar *bar, int64_t amount, char letter)
{
    size_t end;

    if (amount <= 0 || bar->total <= 0)
        return;
    bar->sum += amount;
    end = bar->sum >= bar->total
              ? BAR_WIDTH
              : (size_t)((double)bar->sum / (double)bar->total * BAR_WIDTH + 0.5);
    if (end == bar->used && end < BAR_WIDTH)
        end++;
    while (bar->used < end)
        bar->cells[bar->used++] = letter;
}

static void bar_add_holders(struct bar *bar, const json_t *device, struct legend *legend)
{
    json_t *holder;
    size_t i;

    json_array_foreach(json_object_get(device, "holders"), i, holder) {
        const char *name = json_string_value(json_object_get(holder, "session"));

        bar_add(bar, picture_amount_of(holder, "amount", picture_type_of(device)),
                picture_letter_of(legend, name ? name : "(other domains)"));
    }
}

/* What is not to be had is at the end. */
static void bar_add_reserved(struct bar *bar, int64_t reserved)
{
    for (size_t k = BAR_WIDTH;
         k > bar->used && reserved > 0
         && (double)(BAR_WIDTH - k) < (double)reserved / (double)bar->total * BAR_WIDTH;
         k--)
        bar->cells[k - 1] = '-';
}

static void picture_write_title(const char *title, struct strbuf *out)
{
    strbuf_addf(out, "  %-*.*s ", TITLE_WIDTH, TITLE_WIDTH, title);
}

static void picture_write_bar(const struct bar *bar, enum slot_type type, int64_t used,
                              struct strbuf *out)
{
    char text[AMOUNT_TEXT_MAX], total[AMOUNT_TEXT_MAX];

    strbuf_addf(out, "[%s] %s of %s", bar->cells, slot_amount_humanize(used, type, text),
                slot_amount_humanize(bar->total, type, total));
}

/* The bar and what follows it, below the bar's begin where the terminal is narrow. */
static void picture_end_line(const struct output *o, const struct strbuf *line, struct strbuf *out)
{
    prose_wrap_behind(line->data, TITLE_WIDTH + 3, o->width, out);
    strbuf_addc(out, '\n');
}

/* ---- devices ---- */

static void picture_write_facts(const json_t *device, struct strbuf *out)
{
    int64_t bytes = json_integer_value(json_object_get(device, "memory"));
    int64_t processors = json_integer_value(json_object_get(device, "processors"));
    const char *status = output_text(device, "status");
    char text[AMOUNT_TEXT_MAX];

    strbuf_adds(out, "  ");
    picture_add_clean(out, output_text(device, "model"));
    if (bytes)
        strbuf_addf(out, ", %s", slot_amount_humanize(bytes, SLOT_BYTES, text));
    if (processors)
        strbuf_addf(out, ", %" PRId64 " processors", processors);
    if (output_text(device, "quantum")[0]) {
        strbuf_adds(out, ", by ");
        picture_add_clean(out, output_text(device, "quantum"));
    }
    if (status[0]) {
        strbuf_addf(out, "  ! ");
        picture_add_clean(out, status);
        if (output_text(device, "status_text")[0]) {
            strbuf_adds(out, ": ");
            picture_add_clean(out, output_text(device, "status_text"));
        }
    }
}

/* A share counts against the whole; what is not offered is 'x'. */
static void picture_write_accelerator(const struct output *o, const json_t *device,
                                      struct legend *legend, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    const char *status = output_text(device, "status"), *id = output_text(device, "id");
    bool is_out = status[0] && strcmp(status, "degraded") != 0;
    int64_t reserved = picture_amount_of(device, "reserved", picture_type_of(device));
    struct bar bar;
    char title[32];
    size_t len = strlen(id);

    bar_begin(&bar, picture_amount_of(device, "amount", picture_type_of(device)) + reserved);
    if (is_out)
        memset(bar.cells, 'x', BAR_WIDTH);
    bar_add_holders(&bar, device, legend);
    bar_add_reserved(&bar, reserved);
    (void)snprintf(title, sizeof(title), "%s%s", len > 14 ? ".." : "",
                   id + (len > 14 ? len - 12 : 0));
    picture_write_title(title, out);
    picture_write_bar(&bar, picture_type_of(device),
                      picture_amount_of(device, "used", picture_type_of(device)), &line);
    strbuf_addf(&line, " %s", output_text(device, "slot"));
    picture_write_facts(device, &line);
    picture_end_line(o, &line, out);
}

static int picture_numa_node_of(const json_t *device)
{
    const json_t *numa = json_object_get(device, "numa");

    return numa ? (int)json_integer_value(numa) : -1;
}

/* What the node keeps for itself of its cores, or its memory. */
static bool picture_is_reserve(const json_t *device)
{
    return !picture_is_accelerator(device) && json_object_get(device, "reserved") != NULL;
}

/* It is taken from the last ones. */
static int picture_last_numa_node(const json_t *devices, const char *slot)
{
    const json_t *device;
    int node = -1;
    size_t i;

    json_array_foreach(devices, i, device)
        if (strcmp(output_text(device, "slot"), slot) == 0 && !picture_is_reserve(device))
            node = picture_numa_node_of(device);
    return node;
}

/* All cores, or the memory, of one NUMA node in one bar. */
static void picture_write_sum(const struct output *o, const json_t *devices, int node,
                              const char *slot, const char *title, struct legend *legend,
                              struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    enum slot_type type = slot_type_guess(slot);
    int64_t total = 0, used = 0, reserved = 0;
    int last = picture_last_numa_node(devices, slot);
    const json_t *device;
    struct bar bar;
    char text[AMOUNT_TEXT_MAX];
    size_t i;

    json_array_foreach(devices, i, device)
        if (strcmp(output_text(device, "slot"), slot) != 0)
            continue;
        else if (picture_is_reserve(device) && node == last)
            reserved += picture_amount_of(device, "reserved", type);
        else if (!picture_is_reserve(device) && picture_numa_node_of(device) == node) {
            total += picture_amount_of(device, "amount", type);
            used += picture_amount_of(device, "used", type);
        }
    if (total + reserved == 0)
        return;
    bar_begin(&bar, total + reserved);
    json_array_foreach(devices, i, device)
        if (picture_numa_node_of(device) == node && strcmp(output_text(device, "slot"), slot) == 0)
            bar_add_holders(&bar, device, legend);
    bar_add_reserved(&bar, reserved);
    picture_write_title(title, out);
    picture_write_bar(&bar, type, used, &line);
    if (reserved)
        strbuf_addf(&line, ", %s reserved", slot_amount_humanize(reserved, type, text));
    picture_end_line(o, &line, out);
}

static void picture_write_numa_node(const struct output *o, const json_t *devices, int node,
                                    bool is_named, struct legend *legend, struct strbuf *out)
{
    const json_t *device;
    size_t i;

    if (is_named && node >= 0)
        strbuf_addf(out, "NUMA node %d\n", node);
    else if (is_named)
        strbuf_adds(out, "any NUMA node\n");
    json_array_foreach(devices, i, device)
        if (picture_numa_node_of(device) == node && picture_is_accelerator(device))
            picture_write_accelerator(o, device, legend, out);
    picture_write_sum(o, devices, node, "cpu", "cores", legend, out);
    picture_write_sum(o, devices, node, "mem", "memory", legend, out);
}

static size_t picture_find_numa_nodes(const json_t *devices, int nodes[NODES_MAX])
{
    const json_t *device;
    size_t count = 0, i;

    json_array_foreach(devices, i, device) {
        int node = picture_numa_node_of(device);
        size_t at = 0;

        while (at < count && nodes[at] != node)
            at++;
        if (at < count || count == NODES_MAX || picture_is_reserve(device))
            continue;
        /* ascending, not known last */
        for (at = count++; at > 0 && node >= 0 && (nodes[at - 1] > node || nodes[at - 1] < 0); at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
    return count;
}

/* What is wrong with plugins as a whole. */
static void picture_write_plugins(const json_t *plugins, struct strbuf *out)
{
    const json_t *plugin;
    size_t i;

    json_array_foreach(plugins, i, plugin) {
        const char *error = output_text(plugin, "error"), *why = output_text(plugin, "status_text");

        if (!error[0] && !why[0])
            continue;
        strbuf_adds(out, "  ! ");
        picture_add_clean(out, output_text(plugin, "plugin"));
        strbuf_adds(out, ": ");
        picture_add_clean(out, error[0] ? error : why);
        strbuf_addc(out, '\n');
    }
}

void agent_picture_write(const struct output *o, const json_t *agent, struct strbuf *out)
{
    const json_t *devices = json_object_get(agent, "devices");
    struct legend legend = { .count = 0 };
    int nodes[NODES_MAX];
    size_t count = picture_find_numa_nodes(devices, nodes);

    if (count == 0)
        return;
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < count; i++)
        picture_write_numa_node(o, devices, nodes[i], count > 1, &legend, out);
    picture_write_plugins(json_object_get(agent, "plugins"), out);
    strbuf_adds(out, "\n  . free  - reserved  x not offered");
    for (size_t i = 0; i < legend.count; i++) {
        strbuf_addf(out, "  %c ", letters[i]);
        picture_add_clean(out, legend.names[i]);
    }
    strbuf_adds(out, legend.has_others ? "  + others\n" : "\n");
}
