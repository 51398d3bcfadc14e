/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what every front daemon needs of its machine, for "aliquot doctor" */
#ifndef AQ_FRONT_CHECK_H
#define AQ_FRONT_CHECK_H

#include "check/check.h"

/* Each is a check's look(); 'settings' begin with struct front_settings. */
void front_check_port(void *settings, struct finding *ret);
/* Without a certificate the machine is none, which is fine. */
void front_check_joined(void *settings, struct finding *ret);
void front_check_certificate(void *settings, struct finding *ret);

#endif
