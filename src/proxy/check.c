/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see proxy/check.h */
#include "proxy/check.h"

#include "front/check.h"

const struct check proxy_checks[] = {
    { "proxy.joined", "proxy", "membership", front_check_joined },
    { "proxy.port", "proxy", "port for browsers", front_check_port },
    { "proxy.certificate", "proxy", "certificate", front_check_certificate },
    { .id = NULL },
};
