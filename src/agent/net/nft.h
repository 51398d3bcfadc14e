/* SPDX-License-Identifier: Apache-2.0 */
/* nft.h - runs nft(8): each text is one transaction
 *
 * As a program: libnftables is under the GPL. Blocking, for worker threads.
 */
#ifndef AQ_AGENT_NET_NFT_H
#define AQ_AGENT_NET_NFT_H

#include "base/error.h"

/* All of it or nothing. -ENOENT if there is no nft; else the error has its
 * first line.
 */
int nft_run(const char *commands, struct aq_error *err);

#endif
