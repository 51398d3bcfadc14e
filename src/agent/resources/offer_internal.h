/* SPDX-License-Identifier: Apache-2.0 */
/* offer_internal.h - between the files of offer.h */
#ifndef AQ_AGENT_RESOURCES_OFFER_INTERNAL_H
#define AQ_AGENT_RESOURCES_OFFER_INTERNAL_H

#include "agent/resources/offer.h"

/* Is it "KIND/ID" or "SLOT/ID", with or without "=AMOUNT"? */
bool offer_is_device(const char *text);
/* Does "cuda/GPU-*" or "cuda.shares/GPU-1=0.5" mean the device? */
bool offer_is_meant(const char *text, const struct alloc_device *device);

/* offer_reserve.c */
int offer_check_reserved(const struct offer *offer, struct aq_error *err);

#endif
