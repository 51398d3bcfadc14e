/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what every front daemon needs of its machine, for "aliquot doctor" */
#ifndef AQ_FRONT_CHECK_H
#define AQ_FRONT_CHECK_H

#include "check/check.h"
#include "front/settings.h"

/* Each is for a check's look(); 'program' as for front_identity_load(). */
void front_check_port(const char *program, const struct front_settings *settings,
                      struct finding *ret);
/* Without a certificate the machine is none, which is fine. */
void front_check_joined(const char *program, const struct front_settings *settings,
                        struct finding *ret);
void front_check_certificate(const char *program, const struct front_settings *settings,
                             struct finding *ret);

#endif
