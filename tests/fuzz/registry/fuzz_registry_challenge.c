/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry wants: a Bearer names where tokens are, and the URL made of it ends with
 * what was escaped.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry_challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check(const char *text)
{
    struct registry_challenge challenge = { 0 };
    struct aq_error err = { 0 };
    char *url;

    if (registry_challenge_parse(text, &challenge, &err) < 0) {
        require(err.text[0] && !challenge.realm && !challenge.service && !challenge.scope);
        return;
    }
    require(!challenge.is_bearer || challenge.realm);
    require(!challenge.scope || strlen(challenge.scope) < CHALLENGE_TEXT_MAX);
    if (challenge.is_bearer) {
        url = registry_challenge_url(&challenge);
        require(url && strncmp(url, challenge.realm, strlen(challenge.realm)) == 0);
        require(!strpbrk(url + strlen(challenge.realm), " \r\n\"#"));
        free(url);
    }
    registry_challenge_done(&challenge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check(text);
    free(text);
    return 0;
}
