/* split_private.h - between the files of split.h */
#ifndef AQ_AGENT_SPLIT_PRIVATE_H
#define AQ_AGENT_SPLIT_PRIVATE_H

#include "agent/split.h"

/* Is it "KIND/ID" or "SLOT/ID", with or without "=AMOUNT"? */
bool split_is_device(const char *text);
/* Does "cuda/GPU-*" or "cuda.shares/GPU-1=0.5" mean the device? */
bool split_is_meant(const char *text, const struct alloc_device *device);

/* split_reserve.c */
int split_check_reserved(const struct split *split, struct aq_error *err);

#endif
