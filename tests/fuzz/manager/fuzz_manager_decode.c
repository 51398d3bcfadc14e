/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes as a JSON body, a query string, a list of states, whom a proxy asks for,
 * the name of a request.
 */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "manager/usage/usage_time.h"
#include "http/client_address.h"
#include "manager/call/decode.h"
#include "manager/call/repeat.h"
#include "manager/session/session_view.h"
#include "store/password.h"

#define DAY (INT64_C(86400) * 1000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct params {
    const char *name;
    bool reuse;
    enum maybe active;
    int64_t size;
    struct uuid id;
    struct str_list deps;
    struct int_list ports;
    const json_t *resources;
};

static const struct field config[] = {
    { "ports|preopenPorts", FIELD_PORT_LIST, FIELD_NULLABLE, offsetof(struct params, ports), 1024,
      65535 },
    { "resources", FIELD_OBJECT, 0, offsetof(struct params, resources) },
    { "agentList", FIELD_UNSUPPORTED },
    FIELD_END,
};

static const struct field fields[] = {
    { "name|token", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct params, name), 4, 8 },
    { "reuse", FIELD_BOOL, 0, offsetof(struct params, reuse) },
    { "active", FIELD_MAYBE, FIELD_NULLABLE, offsetof(struct params, active) },
    { "size", FIELD_INT, 0, offsetof(struct params, size), 1, 64 },
    { "id", FIELD_UUID, 0, offsetof(struct params, id) },
    { "deps", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct params, deps), 0, 2 },
    { "config", FIELD_STRUCT, 0, 0, 0, 0, config },
    FIELD_END,
};

static void decode(const json_t *json)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct params params = { .size = 1 };
    struct aq_error err = { 0 };
    uint32_t code;

    if (decode_object(fields, json, &arena, &params, &err) < 0) {
        if (!err.field[0] || !err.text[0])
            __builtin_trap();
        return;
    }
    if (strlen(params.name) < 4 || strlen(params.name) > 8 || params.size < 1 || params.size > 64
        || params.deps.count > 2 || !decode_is_plain(params.name, strlen(params.name), false, &code)
        || strpbrk(params.name, "\n\033\177"))
        __builtin_trap();
}

static void read_names(const uint8_t *data, size_t size)
{
    struct principal who = { .version = { .major = size & 1 ? 6 : 9 } };
    char text[512], key[REPEAT_KEY_MAX + 1];
    int64_t from, until;
    uint32_t statuses;
    uint64_t wanted;

    if (size >= sizeof(text))
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)session_view_read_statuses(&who, text, &statuses, NULL);
    (void)session_view_read_fields(text, &wanted, NULL);
    if (usage_time_parse_day(text, "day", &from, &until, NULL) == 0 && until - from != DAY)
        __builtin_trap();
    if (usage_time_parse_month(text, "month", &from, &until, NULL) == 0
        && (until - from < 28 * DAY || until - from > 31 * DAY))
        __builtin_trap();
    if (repeat_read_key(text, key, NULL) == 0
        && (!key[0] || strlen(key) > REPEAT_KEY_MAX || strpbrk(key, "\" ~\r\n")))
        __builtin_trap();
}

static void read_addresses(const uint8_t *data, size_t size)
{
    char proxy[] = "10.0.0.1", *proxies[] = { proxy };
    const struct address_list trusted = { .items = proxies, .count = 1 };
    char value[512], found[CLIENT_ADDRESS_MAX], again[CLIENT_ADDRESS_MAX];
    const struct message_header header = { "x-forwarded-for", value };
    const struct message_head head = { .headers = &header, .header_count = 1 };

    if (size >= sizeof(value))
        return;
    memcpy(value, data, size);
    value[size] = '\0';
    client_address_find(proxy, &head, &trusted, found);
    if (address_normalize(found, strlen(found), again) < 0 || strcmp(found, again) != 0)
        __builtin_trap();
    client_address_network(found, again);
    client_address_find("10.0.0.2", &head, &trusted, found);
    if (strcmp(found, "10.0.0.2") != 0)
        __builtin_trap();
}

static void read_hash(const uint8_t *data, size_t size)
{
    char text[256];

    if (size >= sizeof(text))
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (password_is_foreign(text) && strlen(text) >= PASSWORD_HASH_MAX)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    json_auto_t *body = NULL, *params = NULL, *few = NULL, *output = NULL;
    struct url_query query;

    read_names(data, size);
    read_addresses(data, size);
    read_hash(data, size);
    if (decode_json((const char *)data, size, &body, NULL) == 0)
        decode(body);
    if (decode_large_json((const char *)data, size, 4, &few, NULL) == 0 && !body)
        __builtin_trap();
    if (decode_output_json((const char *)data, size, &output, NULL) < 0 && body)
        __builtin_trap();
    if (url_query_parse(&arena, (const char *)data, size, &query, NULL) == 0)
        decode(params = decode_query(&query));
    return 0;
}
