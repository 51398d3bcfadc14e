/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of sessions and offers of agents: what is read is written so that it reads as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/cluster_network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_network(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct jsonw w = jsonw_make(&out);
    struct cluster_network network, again;
    struct aq_error err = { 0 };
    int r = cluster_network_parse(text, &arena, &network, &err);

    require(r == 0 || (err.text[0] && err.field[0]));
    if (r < 0)
        return;
    cluster_network_write(&network, &w);
    require(cluster_network_parse(out.data, &arena, &again, NULL) == 0);
    require(again.kernel_count == network.kernel_count && again.agent_count == network.agent_count);
}

static void check_offer(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct jsonw w = jsonw_make(&out);
    struct cluster_network_offer offer, again;
    struct aq_error err = { 0 };
    int r = cluster_network_offer_parse(text, &arena, &offer, &err);

    require(r == 0 || (err.text[0] && err.field[0]));
    if (r < 0)
        return;
    cluster_network_offer_write(&offer, &w);
    require(cluster_network_offer_parse(out.data, &arena, &again, NULL) == 0);
    require(strcmp(again.mode, offer.mode) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    check_network(text);
    check_offer(text);
    free(text);
    return 0;
}
