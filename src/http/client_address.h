/* SPDX-License-Identifier: Apache-2.0 */
/* client_address.h - from which address a person asks
 *
 * The connection's, unless that is a trusted proxy: then the last address in
 * X-Forwarded-For that is no trusted proxy's. The header of anyone else is not
 * looked at.
 */
#ifndef AQ_HTTP_CLIENT_ADDRESS_H
#define AQ_HTTP_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "http/message.h"

/* Numeric addresses, as address_normalize() writes them; borrowed. */
struct address_list {
    char *const *items;
    size_t count;
};

bool address_list_has(const struct address_list *list, const char *address);

#define CLIENT_ADDRESS_MAX 46

/* An IPv4 or IPv6 address in its one form; IPv4 in IPv6 becomes IPv4. -EINVAL. */
int address_normalize(const char *text, size_t len, char ret[CLIENT_ADDRESS_MAX]) AQ_UNTRUSTED;

/* Who is behind the connection from 'peer' (text of a socket's address). */
void client_address_find(const char *peer, const struct message_head *head,
                         const struct address_list *trusted,
                         char ret[CLIENT_ADDRESS_MAX]) AQ_UNTRUSTED;

/* What belongs to one person: the address; of IPv6 the network of 64 bits, in
 * which anyone has as many addresses as they like.
 */
void client_address_network(const char *address, char ret[CLIENT_ADDRESS_MAX]);

/* Whose connection it is that comes from 'peer': the network of that address. False if it stands
 * for many, as a trusted proxy or what is no IP address does. For server_name_peer_fn.
 */
bool client_address_name_peer(const char *peer, const struct address_list *trusted,
                              char ret[CLIENT_ADDRESS_MAX]);

/* Is an address, as client_address_find() gives it, in one of "10.0.0.0/8,::1"? What is
 * no IP address is not; with NULL all are. -EACCES (auth-failed).
 */
int client_address_check(const char *address, const char *networks, struct aq_error *err);

#endif
