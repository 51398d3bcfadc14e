#include "cli/agent_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/slot.h"

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

static char letter_of(struct legend *legend, const char *name)
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

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static int64_t amount_of(const json_t *object, const char *key, enum slot_type type)
{
    const char *text = text_of(object, key);
    int64_t amount = 0;

    (void)slot_amount_parse(text, strlen(text), type, false, "", &amount, NULL);
    return amount;
}

static bool is_accelerator(const json_t *device)
{
    return strchr(text_of(device, "slot"), '.') != NULL;
}

static enum slot_type type_of(const json_t *device)
{
    return slot_type_guess(text_of(device, "slot"));
}

/* Terminals must not obey what a device is called. */
static void add_clean(struct strbuf *out, const char *text)
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
              ? BAR_WIDTH : (size_t)((double)bar->sum / (double)bar->total * BAR_WIDTH + 0.5);
    if (end == bar->used && end < BAR_WIDTH)
        end++;
    while (bar->used < end)
        bar->cells[bar->used++] = letter;
}

static void add_holders(struct bar *bar, const json_t *device, struct legend *legend)
{
    json_t *holder;
    size_t i;

    json_array_foreach(json_object_get(device, "holders"), i, holder)
        bar_add(bar, amount_of(holder, "amount", type_of(device)),
                letter_of(legend, text_of(holder, "session")));
}

/* What is not to be had is at the end. */
static void add_reserved(struct bar *bar, int64_t reserved)
{
    for (size_t k = BAR_WIDTH; k > bar->used && reserved > 0
                               && (double)(BAR_WIDTH - k) < (double)reserved / (double)bar->total * BAR_WIDTH; k--)
        bar->cells[k - 1] = '-';
}

static void write_line(const struct bar *bar, enum slot_type type, const char *title, int64_t used,
                       struct strbuf *out)
{
    char text[AMOUNT_TEXT_MAX], total[AMOUNT_TEXT_MAX];

    strbuf_adds(out, "  ");
    strbuf_addf(out, "%-14.14s [%s] %s of %s", title, bar->cells,
                slot_amount_humanize(used, type, text), slot_amount_humanize(bar->total, type, total));
}

/* ---- devices ---- */

static void write_facts(const json_t *device, struct strbuf *out)
{
    int64_t bytes = json_integer_value(json_object_get(device, "memory"));
    int64_t processors = json_integer_value(json_object_get(device, "processors"));
    const char *status = text_of(device, "status");
    char text[AMOUNT_TEXT_MAX];

    strbuf_adds(out, "  ");
    add_clean(out, text_of(device, "model"));
    if (bytes)
        strbuf_addf(out, ", %s", slot_amount_humanize(bytes, SLOT_BYTES, text));
    if (processors)
        strbuf_addf(out, ", %" PRId64 " processors", processors);
    if (text_of(device, "quantum")[0]) {
        strbuf_adds(out, ", by ");
        add_clean(out, text_of(device, "quantum"));
    }
    if (status[0]) {
        strbuf_addf(out, "  ! ");
        add_clean(out, status);
        if (text_of(device, "status_text")[0]) {
            strbuf_adds(out, ": ");
            add_clean(out, text_of(device, "status_text"));
        }
    }
}

/* A share counts against the whole; what is not offered is 'x'. */
static void write_accelerator(const json_t *device, struct legend *legend, struct strbuf *out)
{
    const char *status = text_of(device, "status"), *id = text_of(device, "id");
    bool is_out = status[0] && strcmp(status, "degraded") != 0;
    int64_t reserved = amount_of(device, "reserved", type_of(device));
    struct bar bar;
    char title[32];
    size_t len = strlen(id);

    bar_begin(&bar, amount_of(device, "amount", type_of(device)) + reserved);
    if (is_out)
        memset(bar.cells, 'x', BAR_WIDTH);
    add_holders(&bar, device, legend);
    add_reserved(&bar, reserved);
    (void)snprintf(title, sizeof(title), "%s%s", len > 14 ? ".." : "", id + (len > 14 ? len - 12 : 0));
    write_line(&bar, type_of(device), title, amount_of(device, "used", type_of(device)), out);
    strbuf_addf(out, " %s", text_of(device, "slot"));
    write_facts(device, out);
    strbuf_addc(out, '\n');
}

static int node_of(const json_t *device)
{
    const json_t *numa = json_object_get(device, "numa");

    return numa ? (int)json_integer_value(numa) : -1;
}

/* What the node keeps for itself of its cores, or its memory. */
static bool is_reserve(const json_t *device)
{
    return !is_accelerator(device) && json_object_get(device, "reserved") != NULL;
}

/* It is taken from the last ones. */
static int last_node(const json_t *devices, const char *slot)
{
    const json_t *device;
    int node = -1;
    size_t i;

    json_array_foreach(devices, i, device)
        if (strcmp(text_of(device, "slot"), slot) == 0 && !is_reserve(device))
            node = node_of(device);
    return node;
}

/* All cores, or the memory, of one NUMA node in one bar. */
static void write_sum(const json_t *devices, int node, const char *slot, const char *title,
                      struct legend *legend, struct strbuf *out)
{
    enum slot_type type = slot_type_guess(slot);
    int64_t total = 0, used = 0, reserved = 0;
    int last = last_node(devices, slot);
    const json_t *device;
    struct bar bar;
    char text[AMOUNT_TEXT_MAX];
    size_t i;

    json_array_foreach(devices, i, device)
        if (strcmp(text_of(device, "slot"), slot) != 0)
            continue;
        else if (is_reserve(device) && node == last)
            reserved += amount_of(device, "reserved", type);
        else if (!is_reserve(device) && node_of(device) == node) {
            total += amount_of(device, "amount", type);
            used += amount_of(device, "used", type);
        }
    if (total + reserved == 0)
        return;
    bar_begin(&bar, total + reserved);
    json_array_foreach(devices, i, device)
        if (node_of(device) == node && strcmp(text_of(device, "slot"), slot) == 0)
            add_holders(&bar, device, legend);
    add_reserved(&bar, reserved);
    write_line(&bar, type, title, used, out);
    if (reserved)
        strbuf_addf(out, ", %s reserved", slot_amount_humanize(reserved, type, text));
    strbuf_addc(out, '\n');
}

static void write_node(const json_t *devices, int node, bool is_named, struct legend *legend,
                       struct strbuf *out)
{
    const json_t *device;
    size_t i;

    if (is_named && node >= 0)
        strbuf_addf(out, "NUMA node %d\n", node);
    else if (is_named)
        strbuf_adds(out, "any NUMA node\n");
    json_array_foreach(devices, i, device)
        if (node_of(device) == node && is_accelerator(device))
            write_accelerator(device, legend, out);
    write_sum(devices, node, "cpu", "cores", legend, out);
    write_sum(devices, node, "mem", "memory", legend, out);
}

static size_t find_nodes(const json_t *devices, int nodes[NODES_MAX])
{
    const json_t *device;
    size_t count = 0, i;

    json_array_foreach(devices, i, device) {
        int node = node_of(device);
        size_t at = 0;

        while (at < count && nodes[at] != node)
            at++;
        if (at < count || count == NODES_MAX || is_reserve(device))
            continue;
        /* ascending, not known last */
        for (at = count++; at > 0 && node >= 0 && (nodes[at - 1] > node || nodes[at - 1] < 0); at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
    return count;
}

/* What is wrong with plugins as a whole. */
static void write_plugins(const json_t *plugins, struct strbuf *out)
{
    const json_t *plugin;
    size_t i;

    json_array_foreach(plugins, i, plugin) {
        const char *error = text_of(plugin, "error"), *why = text_of(plugin, "status_text");

        if (!error[0] && !why[0])
            continue;
        strbuf_adds(out, "  ! ");
        add_clean(out, text_of(plugin, "plugin"));
        strbuf_adds(out, ": ");
        add_clean(out, error[0] ? error : why);
        strbuf_addc(out, '\n');
    }
}

void agent_picture_write(const struct output *o, const json_t *agent, struct strbuf *out)
{
    const json_t *devices = json_object_get(agent, "devices");
    struct legend legend = { .count = 0 };
    int nodes[NODES_MAX];
    size_t count = find_nodes(devices, nodes);

    (void)o;
    if (count == 0)
        return;
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < count; i++)
        write_node(devices, nodes[i], count > 1, &legend, out);
    write_plugins(json_object_get(agent, "plugins"), out);
    strbuf_adds(out, "\n  . free  - reserved  x not offered");
    for (size_t i = 0; i < legend.count; i++) {
        strbuf_addf(out, "  %c ", letters[i]);
        add_clean(out, legend.names[i]);
    }
    strbuf_adds(out, legend.has_others ? "  + others\n" : "\n");
}
