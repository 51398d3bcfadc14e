/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <errno.h>

#define DEVICES_MAX 700
#define GRANTS_MAX 32
#define DEFAULT_SLOT "x.shares"

static const char *const kinds_in_order[] = { "npu", "cuda", "x", "cpu", "mem", NULL };
static const char *const cuda_set[] = { "cuda.device:*-mig", "cuda.device", "cuda.shares", NULL };
static const char *const *const exclusive_sets[] = { cuda_set, NULL };

int64_t scenario_amount(const char *text, const char *slot_name)
{
    struct aq_error err = { 0 };
    int64_t amount = 0;

    if (slot_amount_parse(text, strlen(text), slot_type_guess(slot_name), false, slot_name, &amount,
                          &err)
        < 0)
        fail_msg("bad test row: %s", err.text);
    return amount;
}

/* "slot/id" or "id" */
static const char *split_slot(char *text, const char **ret_slot)
{
    char *slash = strchr(text, '/');

    *ret_slot = DEFAULT_SLOT;
    if (!slash)
        return text;
    *slash = '\0';
    *ret_slot = text;
    return slash + 1;
}

static enum slot_type type_of(const char *slot_name)
{
    if (strstr(slot_name, "-mig"))
        return SLOT_UNIQUE;
    if (strstr(slot_name, ".all"))
        return SLOT_UNIFIED;
    return slot_type_guess(slot_name);
}

static void add_slot(const struct scenario *s, const char *name, struct alloc_slot *slots,
                     size_t *count)
{
    struct alloc_slot *slot = &slots[*count];

    for (size_t i = 0; i < *count; i++)
        if (strcmp(slots[i].name, name) == 0)
            return;
    *slot = (struct alloc_slot){ .name = name, .type = type_of(name), .strategy = s->strategy };
    if (slot->type == SLOT_BYTES)
        slot->strategy = ALLOC_FILL;
    if (s->quantum && strstr(name, ".shares"))
        slot->quantum = scenario_amount(s->quantum, name);
    if (s->minimum && strstr(name, ".shares"))
        slot->minimum = scenario_amount(s->minimum, name);
    (*count)++;
}

/* "cpu/0:1" */
static void add_to_grant(struct alloc_grant *grant, char *word)
{
    char *colon = strrchr(word, ':');
    const char *slot_name, *id;

    *colon = '\0';
    id = split_slot(word, &slot_name);
    slot_name = slot_name_intern(slot_name, strlen(slot_name));
    assert_int_equal(alloc_grant_add(grant, slot_name, slot_type_guess(slot_name), id, strlen(id),
                                     scenario_amount(colon + 1, slot_name), NULL),
                     0);
}

static void hold(struct alloc_map *map, const char *text)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    char word[128];
    int used;

    while (text && sscanf(text, " %127s%n", word, &used) == 1) {
        text += used;
        add_to_grant(&grant, word);
    }
    assert_int_equal(alloc_map_apply(map, &grant, NULL), 0);
}

struct alloc_map *scenario_map(const struct scenario *s)
{
    static char words[DEVICES_MAX][80];
    static struct alloc_device devices[DEVICES_MAX];
    struct alloc_slot slots[16];
    struct alloc_config config = { .slots = slots,
                                   .devices = devices,
                                   .affinity = s->affinity,
                                   .allocation_order = kinds_in_order,
                                   .exclusive = exclusive_sets };
    const char *text = s->devices;
    struct aq_error err = { 0 };
    struct alloc_map *map = NULL;
    int used;

    while (sscanf(text, " %79s%n", words[config.device_count], &used) == 1) {
        struct alloc_device *d = &devices[config.device_count];
        char *word = words[config.device_count], *equals = strchr(word, '=');
        char *at = strchr(equals, '@'), *tilde = strchr(equals, '~');

        text += used;
        *equals = '\0';
        if (at)
            *at = '\0';
        if (tilde)
            *tilde = '\0';
        d->id = split_slot(word, &d->slot_name);
        d->capacity = scenario_amount(equals + 1, d->slot_name);
        d->numa_node = at ? atoi(at + 1) : 0;
        d->quantum = tilde ? scenario_amount(tilde + 1, d->slot_name) : 0;
        add_slot(s, d->slot_name, slots, &config.slot_count);
        config.device_count++;
    }
    if (alloc_map_new(&config, &map, &err) < 0)
        fail_msg("%s: %s", s->source, err.text);
    hold(map, s->held);
    return map;
}

/* "cpu=4 x.shares=1" or "1.2" */
static void parse_request(const char *text, struct slots *ret)
{
    char word[128];
    int used;

    while (sscanf(text, " %127s%n", word, &used) == 1) {
        char *equals = strchr(word, '=');
        const char *name = equals ? word : DEFAULT_SLOT;

        text += used;
        if (equals)
            *equals = '\0';
        assert_int_equal(slots_set(ret, name, scenario_amount(equals ? equals + 1 : word, name)),
                         0);
    }
}

/* Everything that a refusal must leave as it is. */
static void describe(const struct alloc_map *map, struct strbuf *out)
{
    struct alloc_device_state state;

    strbuf_clear(out);
    for (size_t i = 0; alloc_map_device(map, i, &state); i++)
        strbuf_addf(out, "%s/%s:%jd %s;", state.slot_name, state.id, (intmax_t)state.allocated,
                    state.held_as ? state.held_as : "");
}

/* Does the grant say "A:0.6 B:0.6", devices in any order? */
static bool grant_matches(const struct alloc_grant *grant, const char *want)
{
    char word[128];
    size_t count = 0;
    int used;

    while (sscanf(want, " %127s%n", word, &used) == 1) {
        char *colon = strrchr(word, ':');
        const char *slot_name, *id;
        bool found = false;

        want += used;
        *colon = '\0';
        id = split_slot(word, &slot_name);
        for (size_t i = 0; i < grant->count; i++) {
            const struct grant_item *item = &grant->items[i];

            found |= strcmp(item->device_id, id) == 0
                     && (slot_name != word || strcmp(item->slot_name, slot_name) == 0)
                     && item->amount == scenario_amount(colon + 1, item->slot_name);
        }
        if (!found)
            return false;
        count++;
    }
    return count == grant->count;
}

static void show_grant(const char *source, const char *step, const struct alloc_grant *grant)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    alloc_grant_write_json(grant, &w);
    print_error("%s, '%s': granted %s\n", source, step, out.data);
}

static void check_is(const struct scenario *s, const struct alloc_map *map, const char *text)
{
    char word[128];
    int used;

    while (sscanf(text, " %127s%n", word, &used) == 1) {
        char *colon = strrchr(word, ':');
        const char *slot_name, *id;
        struct alloc_device_state state;
        bool found = false;

        text += used;
        *colon = '\0';
        id = split_slot(word, &slot_name);
        for (size_t i = 0; alloc_map_device(map, i, &state); i++) {
            if (strcmp(state.id, id) != 0
                || (slot_name == word && strcmp(state.slot_name, slot_name) != 0))
                continue;
            found = true;
            assert_row(state.allocated == scenario_amount(colon + 1, state.slot_name),
                       "%s: %s has %jd", s->source, id, (intmax_t)state.allocated);
        }
        assert_row(found, "%s: %s", s->source, id);
    }
}

static void ask(const struct scenario *s, struct alloc_map *map, const char *step,
                struct alloc_grant *grant)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant chosen = { 0 };
    struct alloc_request request = { .slots = &slots, .chosen = &chosen };
    struct aq_error err = { 0 };
    char left[128], kind[64] = "", field[64] = "";
    const char *arrow = strstr(step, "=>"), *want = arrow + 2;
    int r, used;

    assert_non_null(arrow);
    request.forbid_fragmentation = strncmp(step, "nofrag ", 7) == 0;
    step += request.forbid_fragmentation ? 7 : 0;
    if (sscanf(step, "at %127s%n", left, &used) == 1) {
        for (char *save = NULL, *one = strtok_r(left, ",", &save); one;
             one = strtok_r(NULL, ",", &save))
            add_to_grant(&chosen, one);
        step += used;
    }
    (void)snprintf(left, sizeof(left), "%.*s", (int)(arrow - step), step);
    parse_request(left, &slots);
    describe(map, &before);
    r = alloc_map_allocate(map, &request, grant, &err);
    want += strspn(want, " ");
    if (*want != '!') {
        assert_row(r == 0, "%s, '%s': %s", s->source, step, err.text);
        if (!grant_matches(grant, want))
            show_grant(s->source, step, grant);
        assert_row(grant_matches(grant, want), "%s, '%s'", s->source, step);
        return;
    }
    (void)sscanf(want, "!%63s %63s", kind, field);
    assert_row(r < 0 && err.kind && strcmp(err.kind, kind) == 0, "%s, '%s': %d %s", s->source, step,
               r, err.text);
    assert_row(strcmp(err.field, field[0] ? field : DEFAULT_SLOT) == 0, "%s, '%s': field %s",
               s->source, step, err.field);
    assert_int_equal(grant->count, 0);
    describe(map, &after);
    assert_string_equal(before.data, after.data);
}

/* "to 2 1.4 => A:0.7 B:0.7" */
static void change(const struct scenario *s, struct alloc_map *map, const char *step,
                   struct alloc_grant *grant)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant fresh = { 0 };
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    struct aq_error err = { 0 };
    char left[128], kind[64] = "", field[64] = "";
    const char *arrow = strstr(step, "=>"), *want;
    int used = 0, r;

    assert_non_null(arrow);
    want = arrow + 2 + strspn(arrow + 2, " ");
    assert_int_equal(sscanf(step, "to %*u%n", &used), 0);
    (void)snprintf(left, sizeof(left), "%.*s", (int)(arrow - step - used), step + used);
    parse_request(left, &slots);
    describe(map, &before);
    r = alloc_map_resize(map, grant, &slots, &fresh, &err);
    describe(map, &after);
    assert_string_equal(before.data, after.data);
    if (*want == '!') {
        (void)sscanf(want, "!%63s %63s", kind, field);
        assert_row(r < 0 && err.kind && strcmp(err.kind, kind) == 0, "%s, '%s': %d %s", s->source,
                   step, r, err.text);
        assert_row(strcmp(err.field, field[0] ? field : DEFAULT_SLOT) == 0, "%s, '%s': field %s",
                   s->source, step, err.field);
        return;
    }
    assert_row(r == 0, "%s, '%s': %s", s->source, step, err.text);
    if (!grant_matches(&fresh, want))
        show_grant(s->source, step, &fresh);
    assert_row(grant_matches(&fresh, want), "%s, '%s'", s->source, step);
    assert_int_equal(alloc_map_release(map, grant, NULL), 0);
    assert_int_equal(alloc_map_apply(map, &fresh, NULL), 0);
    AQ_SWAP(*grant, fresh);
}

void scenario_run(const struct scenario *s)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = scenario_map(s);
    struct alloc_grant grants[GRANTS_MAX] = { { 0 } };
    struct aq_error err = { 0 };
    const char *step = s->steps;
    size_t count = 0, number;
    char text[256];

    while (*(step += strspn(step, " ;"))) {
        size_t len = strcspn(step, ";");

        (void)snprintf(text, sizeof(text), "%.*s", (int)len, step);
        step += len;
        if (strncmp(text, "is ", 3) == 0) {
            check_is(s, map, text + 3);
        } else if (sscanf(text, "free %zu", &number) == 1) {
            assert_row(alloc_map_release(map, &grants[number - 1], &err) == 0, "%s: %s", s->source,
                       err.text);
        } else if (sscanf(text, "to %zu", &number) == 1) {
            change(s, map, text, &grants[number - 1]);
        } else {
            assert_true(count < GRANTS_MAX);
            ask(s, map, text, &grants[count++]);
        }
    }
    for (size_t i = 0; i < count; i++)
        alloc_grant_done(&grants[i]);
}
