/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets from strangers: none is good that the authority did not sign. The input is a ticket as it
 * comes; with a first byte of 1 its lines are signed first, and then what is read is what was written.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "link/ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pki_ca *make_ca(void)
{
    char folder[] = "/tmp/aliquot-fuzz-XXXXXX";
    struct pki_ca *ca = NULL;

    if (!mkdtemp(folder) || pki_ca_open(folder, &ca, NULL) < 0)
        __builtin_trap();
    (void)fs_remove_tree(AT_FDCWD, folder, NULL);
    return ca;
}

static void fill(char *ret, size_t size, const uint8_t **data, size_t *left)
{
    size_t len = *left ? AQ_MIN(**data % size, *left - 1) : 0;

    memset(ret, 0, size);
    if (*left) {
        memcpy(ret, *data + 1, len);
        *data += len + 1;
        *left -= len + 1;
    }
}

static void check_written(const struct pki_ca *ca, const struct ticket_key *key,
                          const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = { .id = uuid_random(), .port = 80, .expires_usec = 2 }, got;

    fill(t.proxy, sizeof(t.proxy), &data, &size);
    fill(t.agent, sizeof(t.agent), &data, &size);
    fill(t.app, sizeof(t.app), &data, &size);
    fill(t.access_key, sizeof(t.access_key), &data, &size);
    if (ticket_write(ca, &t, &text, NULL) < 0)
        return;
    if (ticket_read(key, text.data, text.len, 1, &got, NULL) < 0 || strcmp(got.app, t.app) != 0
        || strcmp(got.proxy, t.proxy) != 0 || strcmp(got.agent, t.agent) != 0
        || strcmp(got.access_key, t.access_key) != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pki_ca *ca;
    static struct ticket_key *key;
    struct ticket got;

    if (!ca) {
        ca = make_ca();
        if (ticket_key_new(pki_ca_cert(ca), &key, NULL) < 0)
            __builtin_trap();
    }
    if (size && data[0] == 1)
        check_written(ca, key, data + 1, size - 1);
    else if (ticket_read(key, (const char *)data, size, 1, &got, NULL) == 0)
        __builtin_trap(); /* signed by nobody */
    return 0;
}
