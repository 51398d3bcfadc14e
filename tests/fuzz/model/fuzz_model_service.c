/* SPDX-License-Identifier: Apache-2.0 */
/* Specs, limits, paths of tokens and names of model services: what is read is written so that it
 * reads as the same, and a copy is its like. The first byte chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void write_spec(const struct model_service_spec *spec, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    strbuf_clear(out);
    model_service_spec_write(spec, &w);
}

static void check_spec(const char *text)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct model_service_spec spec, again, *copy;
    struct aq_error err = { 0 };
    int r = model_service_spec_parse(text, &arena, &spec, &err);

    require(r == 0 || (err.text[0] && err.field[0]));
    if (r < 0)
        return;
    write_spec(&spec, &first);
    require(model_service_spec_parse(first.data, &arena, &again, NULL) == 0);
    write_spec(&again, &second);
    require(strcmp(first.data, second.data) == 0);
    copy = model_service_spec_copy(&spec);
    write_spec(copy, &second);
    require(strcmp(first.data, second.data) == 0);
    r = model_service_spec_check(copy, &err);
    require(r == 0 || (err.text[0] && err.field[0]));
    free(copy);
}

static void check_limits(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct model_service_limits limits, again;
    struct aq_error err = { 0 };
    int r = model_service_limits_parse(text, &limits, &err);

    require(r == 0 || (err.text[0] && err.field[0]));
    if (r < 0)
        return;
    model_service_limits_write(&limits, &w);
    require(model_service_limits_parse(out.data, &again, NULL) == 0);
    require(again.cap == limits.cap && again.drain_usec == limits.drain_usec
            && !again.affinity == !limits.affinity);
    free(limits.affinity);
    free(again.affinity);
}

static void check_paths(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct model_service_token token = { .label = NULL }, copy;
    struct aq_error err = { 0 };
    int r = model_service_token_parse_paths(text, &token, &err);

    require(r == 0 || (err.text[0] && err.field[0]));
    if (r == 0) {
        model_service_token_write_paths(&token, &w);
        model_service_token_copy(&copy, &token);
        require(model_service_token_parse_paths(out.data, &copy, NULL) == 0);
        require(copy.paths.count == token.paths.count);
        model_service_token_done(&copy);
    }
    model_service_token_done(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    text = calloc(1, size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        check_spec(text);
        break;
    case 1:
        check_limits(text);
        break;
    case 2:
        check_paths(text);
        break;
    default:
        (void)model_service_check_name(text, NULL);
        break;
    }
    free(text);
    return 0;
}
